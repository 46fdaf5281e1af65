"""The font of formulas holds what formulas and sentences are made of."""

import io
import re
from html import unescape
from importlib import resources
from xml.etree import ElementTree

import pytest

from attlas.claims import doors, find
from attlas.report.typeset import mathml, sentence

ttLib = pytest.importorskip("fontTools.ttLib")  # comes with matplotlib


@pytest.fixture(scope="module")
def font():
    return ttLib.TTFont(io.BytesIO(resources.files("attlas.report").joinpath("fonts/stix-two-math.woff2").read_bytes()))


def _italic(letter):
    """Return how a browser draws a letter that stands alone in <mi>: as the mathematical italic of Unicode."""
    if letter == "h":
        return "\u210e"
    for first, last, start in (("A", "Z", 0x1D434), ("a", "z", 0x1D44E), ("Α", "Ω", 0x1D6E2), ("α", "ω", 0x1D6FC)):
        if first <= letter <= last:
            return chr(start + ord(letter) - ord(first))
    return letter


def test_every_letter_of_every_formula_and_statement_is_in_it(font):
    known, used = set(font.getBestCmap()), set()
    claims = [claim for claim in find() if not claim.id.startswith("test.")]
    formulas = [str(mathml(each.formula)) for each in (*claims, *doors().values()) if each.formula]
    for text in (*formulas, *(str(sentence(claim.statement)) for claim in claims)):
        for found in re.findall(r"<math.*?</math>", text, re.DOTALL):
            for element in ElementTree.fromstring(found).iter():
                words = (element.text or "").strip()
                plain = element.tag.endswith("}mi") and len(words) == 1 and element.get("mathvariant") is None
                used |= {_italic(words)} if plain else set(words)
        used |= set(unescape(re.sub("<[^>]+>", "", re.sub(r"<math.*?</math>", "", text, flags=re.DOTALL))))
    assert {letter for letter in used if ord(letter) not in known and not letter.isspace()} == set()
    assert len(used) > 80


def test_it_sets_mathematics_and_says_its_licence(font):
    assert font["MATH"].table.MathVariants.VertGlyphCoverage.glyphs  # brackets and roots that grow
    assert "STIX Fonts Project Authors" in font["name"].getDebugName(0)
    licence = resources.files("attlas.report").joinpath("fonts/OFL.txt").read_text(encoding="utf-8")
    assert "SIL OPEN FONT LICENSE" in licence
