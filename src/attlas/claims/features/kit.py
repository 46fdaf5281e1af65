"""What claims about random features share: learning curves as series and panels, names of points, the cost of kernels."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.claims.claim import Cost, Measurement, Settings
from attlas.claims.figure import drawn, ticks
from attlas.claims.series import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = ("n", "mse over variance")  # of a learning curve


def curve_points(
    m: Measurement[Any], learners: Mapping[str, str], targets: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any], float, float, None]]:
    """Yield the points of learning curves for `series.gather`.

    Parameters
    ----------
    m : Measurement
        Its result has `sizes`, and an array (sizes, targets) of each learner.
    learners : mapping
        From the name of that array to the key of the table of learners.
    targets : sequence of str
    """
    for array, name in learners.items():
        bias = float(m.point.bias) if name == "biased" else 0.0
        curves = np.asarray(m.result[array]).reshape(len(m.result["sizes"]), -1)
        for target, curve in zip(targets, curves.T, strict=True):
            settings = {"target": target, "d": m.point.d, "keys": m.point.keys, "bias": bias}
            for n, error in zip(m.result["sizes"], curve, strict=True):
                yield name, settings, float(n), float(error), None


def draw_curves(axis: "Axes", curves: Sequence[Series], title: str = "", marks: int = 6) -> None:
    """Draw learning curves in one panel, with every `marks`-th size written below."""
    for one in curves:
        drawn(axis, one)
    axis.set(xlabel="samples n", xscale="log", yscale="log", title=title)
    ticks(axis, curves[0].x[::marks])


def labels(points: Sequence[Settings]) -> dict[Settings, str]:
    """Return a name for every point: its d, and whatever else differs between them."""
    fields = [
        name for name in type(points[0]).model_fields if name == "d" or len({getattr(p, name) for p in points}) > 1
    ]
    return {p: " ".join(f"{name}={getattr(p, name)}" for name in fields) for p in points}


def kernels_cost(n: int, keys: int, n_test: int) -> Cost:
    """Expect an unbiased and a biased kernel, and a path of factorisations of each."""
    pairs = n * (n / 2 + n_test) * keys**2
    return Cost(0.3 + 2.5e-8 * pairs + 6e-9 * n**3, int(200_000_000 + 30 * n * (n + n_test)))
