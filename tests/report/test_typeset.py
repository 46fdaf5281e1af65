from xml.etree import ElementTree

import pytest

from attlas.claims import doors, find
from attlas.report.typeset import closed, mathml, sentence

CLAIMS = [claim for claim in find() if not claim.id.startswith("test.")]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_formula_of_every_claim_becomes_mathml_with_nothing_left_over(claim):
    assert claim.formula
    _whole(claim.formula)


@pytest.mark.parametrize("door", [door for door in doors().values() if door.formula], ids=lambda door: door.key)
def test_so_does_the_model_of_every_question(door):
    _whole(door.formula)


def _whole(tex):
    tree = ElementTree.fromstring(str(mathml(tex)))
    assert tree.tag.endswith("math")
    assert tree.get("alttext") == tex
    assert "\\" not in "".join(tree.itertext())  # a command that is not understood stays as it is


def test_an_unknown_command_is_noticed():
    with pytest.raises(AssertionError):
        _whole(r"\arg x")


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("n50 grows as d^1.75, error as M^-1/2", "n50 grows as d<sup>1.75</sup>, error as M<sup>−1/2</sup>"),
        ("variance Q (1 + delta_ab) of h_ab", "variance Q (1 + δ<sub>ab</sub>) of h<sub>ab</sub>"),
        ("alpha (T^2 + T - 2) as rho -> 0, S >= 0", "α (T<sup>2</sup> + T − 2) as ρ → 0, S ≥ 0"),
        ("alpha = (2 rho - rho^2)/(T^2 + T - 2)", "α = (2 ρ − ρ<sup>2</sup>)/(T<sup>2</sup> + T − 2)"),
        ("1/2 + rho - rho^2/2, M^(1/2)", "1/2 + ρ − ρ<sup>2</sup>/2, M<sup>1/2</sup>"),
        ("over sqrt(B(f)) and sqrt(d)", "over √B(f) and √d"),
        ("random_span at d = infinity", "random_span at d = ∞"),
        ("<b>x</b> & 'y'", "&lt;b&gt;x&lt;/b&gt; &amp; &#39;y&#39;"),
    ],
)
def test_the_formulas_of_a_sentence_are_set_and_its_markup_is_escaped(plain, shown):
    assert sentence(plain) == shown


def test_a_sentence_ends_once_and_stays_markup():
    assert closed("It holds") == closed("It holds.") == "It holds."
    assert closed("Does it?") == "Does it?"
    assert closed(sentence("as d^2")).__html__() == "as d<sup>2</sup>."


@pytest.mark.parametrize(
    "tex",
    [r"\href{javascript:alert(1)}{x}", r"\text{<script>alert(1)</script>}", r"\style{position:fixed}{x}",
     r"\class{hidden}{x}", r"\text{<img src=x onerror=alert(1)>}", r"\frac", r"{{{", r"\left("],
)  # fmt: skip
def test_tex_becomes_a_formula_or_stays_text(tex):
    found = str(mathml(tex))
    for wrong in ("href=", "<script", "style=", "class=", "<img"):
        assert wrong not in found.replace("&lt;", "")
    ElementTree.fromstring(found)
