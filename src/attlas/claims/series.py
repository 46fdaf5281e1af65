"""The points of a figure as data: means with standard errors, and the theory beside them. Whoever draws, draws these."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any


@dataclass(frozen=True)
class Series:
    """The points of one curve.

    Attributes
    ----------
    name : str
        A key of ``learners.LEARNERS``, or what the points are in words.
    settings : dict
        What all points share, such as ``{"channel": "softmax", "tokens": 2, "rho": 0.5, "d": 80}``.
    x_name, y_name : str
        What is drawn against what.
    x, mean, standard_error, seeds : tuple
        At each x the mean over seeds, its standard error (0 for a single seed) and how many seeds there are.
    theory : tuple of float, optional
        What is predicted at each x.
    """

    name: str
    settings: Mapping[str, Any]
    x_name: str
    y_name: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    standard_error: tuple[float, ...]
    seeds: tuple[int, ...]
    theory: tuple[float, ...] | None = None


def gather(
    rows: Iterable[tuple[str, Mapping[str, Any], float, float, float | None]], x_name: str, y_name: str
) -> list[Series]:
    """Return the series of single runs, given as (name, settings, x, value, theory).

    Values that are not finite are left out. Series come in the order of their first run, points by x.
    """
    groups: dict[tuple[Any, ...], dict[float, tuple[list[float], float | None]]] = {}
    for name, settings, x, value, theory in rows:
        if isfinite(value):
            points = groups.setdefault((name, tuple(settings.items())), {})
            points.setdefault(float(x), ([], theory))[0].append(float(value))
    found = []
    for (name, settings), points in groups.items():
        places = sorted(points)
        runs = [points[x][0] for x in places]
        theories = [theory for x in places if (theory := points[x][1]) is not None]
        found.append(
            Series(
                name,
                dict(settings),
                x_name,
                y_name,
                tuple(places),
                tuple(sum(own) / len(own) for own in runs),
                tuple(map(_standard_error, runs)),
                tuple(map(len, runs)),
                tuple(map(float, theories)) if len(theories) == len(places) else None,
            )
        )
    return found


def _standard_error(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    return sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
