"""The templates of the site, and what they are given."""

from typing import Any

from attlas import __version__
from attlas.claims import door
from attlas.claims.tex import plain
from attlas.claims.wording import worded
from attlas.report.bibliography import cited
from attlas.report.margin import deciding, picture, rank, spread, value
from attlas.report.places import found
from attlas.report.svg import DARK, variable
from attlas.report.typeset import capital, closed, headline, mathml, number, region, sentence

GLYPHS = {
    "supported": "●",
    "refuted": "✕",
    "inconclusive": "◐",
    "illustration": "◇",
    "damaged": "!",
    "unfinished": "◌",
    "not run": "○",
}


def templates(tier: str, seed: int, explorer: str = "", address: str = "") -> Any:
    """Return the templates, everything that is written into them escaped."""
    import jinja2

    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("attlas.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {
        "mathml": mathml,
        "plain": plain,
        "capital": capital,
        "found": found,
        "rank": rank,
        "spread": spread,
        "value": value,
        "sentence": sentence,
        "worded": worded,
        "closed": closed,
        "headline": headline,
        "number": number,
        "region": region,
        "cited": cited,
        "page_title": lambda key: door(key).title,
        "deciding": deciding,
        "picture": picture,
    }
    pages.globals |= {
        "version": __version__,
        "tier": tier,
        "seed": seed,
        "explorer": explorer,
        "address": address,
        "glyphs": GLYPHS,
        "dark": {variable(light): colour for light, colour in DARK.items()},
    }
    return pages
