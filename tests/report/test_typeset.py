import json
import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from attlas import lab
from attlas.claims import doors, find
from attlas.claims.tex import FORMULA
from attlas.report.places import found
from attlas.report.typeset import closed, headline, mathml, number, sentence

FOUND = ["aim.softmax-threshold", "trained.threshold", "trained.double-descent", "context.label-energy"]
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


def test_bars_of_a_norm_are_as_high_as_letters_unless_they_are_told_to_grow():
    plain, grown = (ElementTree.fromstring(str(mathml(tex))) for tex in (
        r"\lVert A\rVert^2", r"\left\lVert\frac{A}{2}\right\rVert"))  # fmt: skip
    for tree, stretchy in ((plain, "false"), (grown, "true")):
        bars = [element for element in tree.iter() if element.text == "\u2016"]
        assert [bar.get("stretchy") for bar in bars] == [stretchy, stretchy]


def test_a_slash_stands_close_as_tex_sets_it():
    assert '<mo lspace="0em" rspace="0em">/</mo>' in mathml("d^{-1/4}", "inline")


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
        ("S = W W^T, (1 - eta)^2T, 2T + 1", "S = W W<sup>T</sup>, (1 − η)<sup>2T</sup>, 2T + 1"),
        ("d_head = d/H, error e_T", "d<sub>head</sub> = d/H, error e<sub>T</sub>"),
        ("random_span at d = infinity", "random span at d = ∞"),
        ("is -0.47 (-0.5 to -0.4), to 1e-6, d = 5-7", "is −0.47 (−0.5 to −0.4), to 10<sup>−6</sup>, d = 5-7"),
        ("<b>x</b> & 'y'", "&lt;b&gt;x&lt;/b&gt; &amp; &#39;y&#39;"),
    ],
)
def test_the_formulas_of_a_sentence_are_set_and_its_markup_is_escaped(plain, shown):
    assert sentence(plain) == shown


def test_brackets_balance_in_whatever_a_claim_says():
    """In statements, captions and the findings from the results that come with attlas, as people see them."""
    told = [text for claim in CLAIMS for text in (claim.statement, claim.caption)]
    told += [found(entry) for entry in lab.verdicts(FOUND, "quick", store="none.db", shipped=True)]
    for text in filter(None, told):
        shown = unescape(re.sub("<[^>]+>", "", str(sentence(text))))
        for first, last in ("()", "[]"):
            assert shown.count(first) == shown.count(last), text
        assert text.count("$") % 2 == 0, text


def test_headlines_are_first_clauses():
    assert headline("Recovery is a phase transition, at once: below it, none.") == (
        "Recovery is a phase transition, at once", "below it, none.")  # fmt: skip
    assert headline("Two layers: one is easy and the other (hidden: a parity) is not; so it is") == (
        "Two layers: one is easy and the other (hidden: a parity) is not", "so it is")  # fmt: skip
    assert headline("As Fu et al. Say, it holds for all layers.") == ("As Fu et al. Say, it holds for all layers", "")
    assert headline("Above $a: b$ it holds for all layers. And more.") == (
        "Above $a: b$ it holds for all layers", "And more.")  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.12345, "0.123"), (2.228e-12, "2.23 × 10⁻¹²"), (184.94, "185"), (-0.5, "−0.5"), (12345, "12300"), (1e5, "100000"),
     (1.2e6, "1.2 × 10⁶"), (float("inf"), "∞"), (float("-inf"), "−∞"), (float("nan"), "not a number"), (0, "0")],
)  # fmt: skip
def test_numbers_have_three_digits_and_a_true_minus(value, shown):
    assert number(value) == shown


def test_tex_in_a_sentence_is_set_in_its_line():
    shown = str(sentence(r"It grows as d^2 above $\alpha > (2\rho - \rho^2)/(T^2+T-2)$ & for $5 or $6."))
    before, formula, after = re.fullmatch(r"(.*?)(<math.*</math>)(.*)", shown).groups()
    assert before == "It grows as d<sup>2</sup> above "
    assert after == " &amp; for $5 or $6."
    tree = ElementTree.fromstring(formula)
    assert tree.get("display") == "inline"
    assert "".join(tree.itertext()) == "α>(2ρ−ρ2)/(T2+T−2)"
    assert "<script" not in str(sentence("$<script>alert(1)</script>$"))


def test_no_line_ends_between_a_formula_and_its_brackets_or_stops():
    shown = str(sentence("It holds ($d^2$), not at $d$ (see below) or $k$."))
    assert re.sub("<math.*?</math>", "*", shown) == (
        'It holds <span class="whole">(*),</span> not at * (see below) or <span class="whole">*.</span>')  # fmt: skip
    assert closed(sentence("at $d^2$.")) == sentence("at $d^2$.")


STATEMENTS = Path(__file__).parent / "assets" / "statements.json"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_statement_is_set_as_somebody_has_looked_at_it(claim):
    """`python tests/report/make_statements.py` writes them anew; look at what changes before you commit it."""
    shown = str(sentence(claim.statement))
    text = unescape(re.sub("<[^>]+>", "", shown))
    assert not re.search(r"\^|\w_\w|sqrt\(|\b(alpha|eta|gamma|kappa|omega|rho|tau|Theta|Delta)\b", text)
    for first, last in ("()", "[]"):
        assert text.count(first) == text.count(last)
    ElementTree.fromstring(f"<p>{shown}</p>")
    assert shown == json.loads(STATEMENTS.read_text(encoding="utf-8"))[claim.id]


def test_the_powers_of_statements_are_tex():
    """A formula in a statement stands between dollar signs."""
    wrong = [claim.id for claim in CLAIMS if re.search(r"\^|²|³|\w_\w|sqrt|\de-\d", FORMULA.sub("", claim.statement))]
    assert wrong == []


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


@pytest.mark.parametrize(
    ("plain", "shown"),
    [("agree to 2e-07.", "agree to 2 × 10<sup>−7</sup>."), ("below 1e-9", "below 10<sup>−9</sup>"),
     ("1.5e+06 of", "1.5 × 10<sup>6</sup> of"), ("as d^(-0.49 ± 0.04) does", "as d<sup>−0.49 ± 0.04</sup> does"),
     ("version 3e8a", "version 3e8a"), ("T=2 noise=0.25: random_span", "T = 2 noise = 0.25: random span")],
)  # fmt: skip
def test_numbers_and_powers_of_code_are_set_as_people_write_them(plain, shown):
    assert str(sentence(plain)) == shown
