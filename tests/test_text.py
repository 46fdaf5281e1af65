import pytest

from attlas.text import printable


@pytest.mark.parametrize("code", [0, 7, 8, 13, 27, 127, 0x85, 0x9B, 0x200B, 0x202E, 0x2066, 0xD800, 0xE000])
def test_what_acts_on_a_terminal_is_shown_as_an_escape(code):
    found = printable(f"a{chr(code)}b")
    assert found.isascii()
    assert found.startswith("a\\")
    assert found.endswith("b")


def test_other_text_stays_as_it_is():
    for text in ("", "α = 0.1\n\tnext line", "café, 中文, ×\u00a0²", "\\x1b"):
        assert printable(text) == text
