"""Text as a terminal may show it."""

import unicodedata

from attlas.errors import InputError


def printable(text: str) -> str:
    """Return a text in which nothing acts on a terminal: control characters, and what hides or turns others, as escapes.

    Lines and tabs stay. A store, a claim or a path may hold any text, and whoever wrote it may not be the one who reads it.
    """
    if not isinstance(text, str):
        raise InputError(f"text must be a string; got a {type(text).__name__}")
    if text.isprintable():
        return text
    return "".join(char if char in "\n\t" or unicodedata.category(char)[0] != "C" else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()
