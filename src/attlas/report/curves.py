"""The points of a figure for other programs: a claim's series as CSV."""

import csv
import io
from collections.abc import Sequence

from attlas.claims import Series
from attlas.claims.learners import learner


def table(series: Sequence[Series]) -> str:
    """Return one row per point: the series and its settings, x, the mean with its standard error, seeds, theory."""
    settings = dict.fromkeys(name for one in series for name in one.settings)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["series", *settings, "x_name", "x", "y_name", "mean", "standard_error", "seeds", "theory"])
    for one in series:
        own = [learner(one.name).name, *(one.settings.get(name, "") for name in settings)]
        points = zip(one.x, one.mean, one.standard_error, one.seeds, one.theory or [""] * len(one.x), strict=True)
        rows.writerows([*own, one.x_name, x, one.y_name, *rest] for x, *rest in points)
    return text.getvalue() if series else ""
