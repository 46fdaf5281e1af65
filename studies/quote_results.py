"""Writes numbers of the results that come with attlas into the prose that quotes them; a test finds any that differ.

    python studies/quote_results.py            # rewrite README.md and docs/*.md, and draw the picture of the README
    python studies/quote_results.py --check    # exit 1 and say which pages differ

A number that is quoted stands before a comment that names its claim and its test, which may be shortened to a part that no
other test of the claim has::

    begins at 0.991 ± 0.027<!-- aim.softmax-threshold: transition over formula --> of the formula

A table stands between two comments. The first names a claim, whose points it shows, what makes a row, what a column, and
which points are kept::

    <!-- table aim.state-evolution: rows=channel,alpha columns=d rho=1.0 -->
    <!-- end of table -->

The full tier is quoted where it is shipped, else run 0 of the quick one; "quick" or "full" before the claim's name insists.
"""

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from attlas import lab
from attlas.claims.learners import learner

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PICTURES = {ROOT / "docs" / "images" / "one-teacher.png": "lenses.one-teacher"}
SOURCE = r"(?P<tier>quick |full |)(?P<claim>[a-z]+\.[a-z-]+)"
NUMBER = re.compile(rf"(?P<said>[-\d.e]+(?: ± [\d.e-]+| \([-\d.e to]+\))?)<!-- {SOURCE}: (?P<test>[^>]+?) -->")
TABLE = re.compile(rf"(?P<head><!-- table {SOURCE}: (?P<how>[^>]+?) -->\n).*?(?P<end><!-- end of table -->)", re.S)


def quoted(page: str) -> str:
    """Return a page with every quoted number and table as the shipped results have it."""
    page = NUMBER.sub(lambda m: m[0].replace(m["said"], number(judged(m["claim"], m["tier"]), m["test"]), 1), page)
    return TABLE.sub(lambda m: m["head"] + table(judged(m["claim"], m["tier"]), m["how"]) + m["end"], page)


def number(entry: lab.Judged, name: str) -> str:
    """Return the number of a test with its 99 % interval, as prose has it: 0.991 ± 0.027, or 1 (0.97 to 1) if lopsided.

    Numbers of a verdict that no test decides on have no interval.
    """
    known = entry.verdict.tests if entry.verdict else ()
    if entry.verdict and name in entry.verdict.numbers and all(test.name != name for test in known):
        return f"{float(f'{entry.verdict.numbers[name]:.3g}'):g}"
    tests = [test for test in known if test.name == name] or [test for test in known if name in test.name]
    if len(tests) != 1:
        raise SystemExit(f"{entry.claim.id} has {len(tests)} tests whose names contain {name!r}; it must be one")
    (test,) = tests
    value, (low, high) = test.estimate.value, test.estimate.interval()
    if not test.exact and abs(high + low - 2 * value) > 0.1 * (high - low):
        return f"{value:.3g} ({low:.2g} to {high:.2g})"
    return with_interval(value, 0.0 if test.exact else (high - low) / 2)


def with_interval(value: float, half: float) -> str:
    """Return a number to two digits of its uncertainty; to three digits if it has none."""
    if half <= 0 or not np.isfinite(half):
        return f"{value:.3g}"
    places = max(0, 1 - int(np.floor(np.log10(half))))
    return f"{value:.{places}f} ± {half:.{places}f}"


def table(entry: lab.Judged, how: str) -> str:
    """Return the points of a claim's figure as a table in Markdown: mean and standard error of the last digits."""
    options = dict(part.split("=", 1) for part in how.split())
    rows, column = options.pop("rows").split(","), options.pop("columns")
    found: dict[tuple[str, ...], dict[Any, str]] = {}
    theory: dict[tuple[str, ...], set[str]] = {}
    for point in points(entry):
        if not {*rows, column, *options} <= point.keys():
            continue
        if any(str(point[name]) not in wanted.split(",") for name, wanted in options.items()):
            continue
        row = tuple(str(point[name]) for name in rows)
        found.setdefault(row, {})[point[column]] = point["mean"]
        theory.setdefault(row, set()).add(point["theory"])
    columns = list(dict.fromkeys(key for cells in found.values() for key in cells))
    columns = sorted(columns) if all(isinstance(key, float | int) for key in columns) else columns
    one = all(len(values) == 1 for values in theory.values())
    named = [f"{column} = {key:g}" if isinstance(key, float | int) else str(key) for key in columns]
    head = [*rows, *named, *(["theory"] if one else [])]
    lines = [head, ["---"] * len(head)]
    for row, cells in found.items():
        lines.append([*row, *(cells.get(key, "") for key in columns), *(theory[row] if one else ())])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def points(entry: lab.Judged) -> list[dict[str, Any]]:
    """Return every point of the figure with its settings, the mean with its error, and the theory."""
    found = []
    for one in entry.claim.series(entry.measurements()) if entry.claim.series and entry.verdict else ():
        theories = one.theory or (None,) * len(one.x)
        for x, value, error, theory in zip(one.x, one.mean, one.standard_error, theories, strict=True):
            named = {"series": learner(one.name).name, one.x_name: x, "mean": brief(value, error)}
            found.append({**one.settings, **named, "theory": "" if theory is None else f"{theory:.4g}"})
    return found


def brief(value: float, error: float) -> str:
    """Return 0.4169(75): a mean, and its standard error in units of the last digit."""
    if error <= 0:
        return f"{value:.4g}"
    places = max(0, 1 - int(np.floor(np.log10(error))))
    return f"{value:.{places}f}({round(error * 10**places)})" if places <= 6 else f"{value:.1e}"


@cache
def judged(claim: str, tier: str) -> lab.Judged:
    """Return what came with attlas of a claim: at the tier that is named, or the full one where there is one."""
    for name in (tier.strip(),) if tier else ("full", "quick"):
        (found,) = lab.verdicts([claim], name, store=ROOT / "no-such-store.db", shipped=True)
        if found.verdict:
            return found
    raise SystemExit(f"no results of {claim} came with attlas, {tier or 'at any tier'}")


def main() -> None:
    differ = [path for path in PAGES if quoted(text := path.read_text(encoding="utf-8")) != text]
    if "--check" in sys.argv[1:]:
        raise SystemExit(f"pages that differ from the results: {[path.name for path in differ]}" if differ else 0)
    for path in differ:
        path.write_text(quoted(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(path.relative_to(ROOT))
    for path, claim in PICTURES.items():
        entry = judged(claim, "")
        entry.claim.draw(entry.measurements()).savefig(path, dpi=130)


if __name__ == "__main__":
    main()
