"""Writes numbers of the results that come with attlas into the prose that quotes them; a test finds any that differ.

    python studies/quote_results.py            # rewrite README.md and docs/*.md
    python studies/quote_results.py --check    # exit 1 and say which pages differ

A number that is quoted stands before a comment that names its claim and its test, which may be shortened to a part that no
other test of the claim has::

    begins at 0.991 ± 0.027<!-- aim.softmax-threshold: transition over formula --> of the formula

A table stands between two comments. The first names a claim, whose points it shows, what makes a row, what a column, and
which points are kept::

    <!-- table aim.state-evolution: rows=channel,alpha columns=d rho=1.0 -->
    <!-- end of table -->

The full tier is quoted where it is shipped, else run 0 of the quick one.
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
NUMBER = re.compile(r"(?P<said>[-−\d.e]+(?: ± [\d.e-]+)?)<!-- (?P<claim>[a-z]+\.[a-z-]+): (?P<test>[^>]+?) -->")
TABLE = re.compile(
    r"(?P<head><!-- table (?P<claim>[a-z]+\.[a-z-]+): (?P<how>[^>]+?) -->\n).*?(?P<end><!-- end of table -->)", re.S
)


def quoted(page: str) -> str:
    """Return a page with every quoted number and table as the shipped results have it."""
    page = NUMBER.sub(lambda m: m[0].replace(m["said"], number(m["claim"], m["test"]), 1), page)
    return TABLE.sub(lambda m: m["head"] + table(m["claim"], m["how"]) + m["end"], page)


def number(claim: str, name: str) -> str:
    """Return the number of a test with half of its 99 % interval, as prose has it: 0.991 ± 0.027."""
    verdict = judged(claim).verdict
    tests = [test for test in verdict.tests if name in test.name] if verdict else []
    if len(tests) != 1:
        raise SystemExit(f"{claim} has {len(tests)} tests whose names contain {name!r}; it must be one")
    (test,) = tests
    return told(test.estimate.value, 0.0 if test.exact else float(np.ptp(test.estimate.interval())) / 2)


def told(value: float, half: float) -> str:
    """Return a number to two digits of its uncertainty; to three digits if it has none."""
    if half <= 0 or not np.isfinite(half):
        return f"{value:.3g}"
    places = max(0, 1 - int(np.floor(np.log10(half))))
    return f"{value:.{places}f} ± {half:.{places}f}"


def table(claim: str, how: str) -> str:
    """Return the points of a claim's figure as a table in Markdown: mean and standard error of the last digits."""
    options = dict(part.split("=", 1) for part in how.split())
    rows, column = options.pop("rows").split(","), options.pop("columns")
    entry = judged(claim)
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
def judged(claim: str) -> lab.Judged:
    """Return what came with attlas of a claim: the full tier where there is one."""
    none = ROOT / "no-such-store.db"
    full, quick = (lab.verdicts([claim], tier, store=none, shipped=True)[0] for tier in ("full", "quick"))
    return full if full.verdict else quick


def main() -> None:
    differ = [path for path in PAGES if quoted(text := path.read_text(encoding="utf-8")) != text]
    if "--check" in sys.argv[1:]:
        raise SystemExit(f"pages that differ from the results: {[path.name for path in differ]}" if differ else 0)
    for path in differ:
        path.write_text(quoted(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
