"""What claims about random features share: guards against leaks, sample costs, learning curves as series and panels.

And the theory beside simulation: errors of single draws at given penalties, what the theory predicts there, and how far the
two are apart over many cells.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.claims.claim import Cost, Measurement, Settings
from attlas.claims.estimate import Exact, Student, Undecided, mean, resampled
from attlas.claims.figure import drawn
from attlas.claims.mutation import Mutation, changed
from attlas.claims.series import Series
from attlas.claims.verdict import Outcome, Test, Verdict, above, decide
from attlas.features import sample_cost
from attlas.features import targets as known_targets
from attlas.numerics import stream
from attlas.tokens import sphere

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from attlas.features import TargetData, Theory

Array = NDArray[np.float64]

AXES = ("n", "mse over variance")  # of a learning curve
NOTHING = 0.9  # an error of this share of the variance: nothing was learned
SMALLEST, PERMUTED, FLOOR = (
    "smallest test error",
    "error on permuted labels",
    "first error over what a linear learner must leave",
)


@cache
def theory(
    d: int, keys: int, bias: float = 0.0, scoring: str = "relu", positions: float = 0.0, learner: Any = "attention"
) -> "Theory":
    """Return the theory of these settings; a process makes every spectrum once."""
    from attlas.features import theory as made

    return made(d, keys, bias, scoring, positions=positions, learner=learner)


@cache
def predicted(
    own: "Theory", names: tuple[str, ...], sizes: tuple[int, ...], ridges: tuple[float, ...], heads: Any
) -> Array:
    """Return the predicted errors (penalties, sizes, targets and noise), each target's over its variance.

    The last column is the variance that label noise of variance one causes.
    """
    found = own.curve(list(names), list(sizes), heads=heads, ridge=list(ridges), noise=1.0)
    if not bool(found.converged.all()):
        raise RuntimeError(f"the theory did not converge at some of {sizes} samples, penalties {ridges}, {heads} heads")
    noise = found.from_noise.values  # (targets, penalties, sizes), the same for all targets
    return np.moveaxis(np.concatenate([found.error.values - noise, noise[:1]]), 0, -1)


def simulated_errors(
    own: "Theory",
    names: Sequence[str],
    sizes: Sequence[int],
    ridges: Sequence[float],
    heads: Any,
    seed: int,
    n_test: int = 600,
    noises: int = 6,
) -> Array:
    """Return the test errors of one draw of tokens, targets, heads and noise, in the order of `predicted`.

    Parameters
    ----------
    own : Theory
        Its settings are those of the learner: d, keys, bias, scoring, positions.
    names : sequence of str
        Targets. Their directions, the tokens, the heads and the noise come from streams of their own.
    sizes, ridges : sequences
        Increasing sample sizes; absolute penalties.
    heads : int or "infinite"
    n_test : int
    noises : int
        Columns of label noise, whose variances are averaged.
    """
    from attlas.features.nested_curve import nested_curve

    X = sphere(sizes[-1], own.keys + 1, own.d, stream(seed, "train"))
    X_test = sphere(n_test, own.keys + 1, own.d, stream(seed, "test"))
    functions = [known_targets.named(name, own.d, seed) for name in names]
    scale = np.sqrt([own.placed(name).variance for name in names])
    Y, expected = (np.stack([f(x) for f in functions], axis=1) / scale for x in (X, X_test))
    noise = stream(seed, "label noise").standard_normal((len(X), noises))
    Y, expected = np.hstack([Y, noise]), np.hstack([expected, np.zeros((n_test, noises))])
    K, cross = _grams(own, X, X_test, heads, int(stream(seed, "heads").integers(2**31)))
    found = nested_curve(K, Y, cross, expected, np.array(sizes), np.asarray(ridges)).test
    return np.concatenate([found[..., :-noises], found[..., -noises:].mean(-1, keepdims=True)], axis=-1)


def _grams(own: "Theory", X: Array, X_test: Array, heads: Any, state: int) -> tuple[Array, Array]:
    """Return the Gram matrix of a learner, and that between test and training sequences."""
    from attlas.features import RandomAttentionFeatures, RandomMLPFeatures, attention_kernel

    options = {"bias": own.bias, "activation": own.scoring, "positions": own.positions}
    if heads == "infinite":
        return attention_kernel(X, **options), attention_kernel(X_test, X, **options)
    if own.learner == "network":
        made: Any = RandomMLPFeatures(round(heads * (own.d + 1)), random_state=state)
    else:
        made = RandomAttentionFeatures(heads, random_state=state, **options)
    Phi = made.fit(X).transform(X)
    return Phi @ Phi.T, made.transform(X_test) @ Phi.T


def deviation(measurements: Sequence[Measurement[Any]], share: float = 0.5, cells: Any = slice(None)) -> Student:
    """Estimate a quantile, over all cells of all points, of |log(mean error over seeds / predicted error)|.

    What seeds scatter by is part of it, so it never looks smaller than it is.

    Parameters
    ----------
    measurements : sequence of Measurement
        Results have `errors` and `theory`, arrays of one shape.
    share : float, default 0.5
        The median; 0.9 is what nine in ten cells keep.
    cells : index, optional
        Which of the last axis (targets) count.
    """
    return _over_cells(measurements, cells, lambda off: float(np.quantile(np.abs(off), share)))


def tilt(measurements: Sequence[Measurement[Any]], cells: Any = slice(None)) -> Student:
    """Estimate the mean over cells of log(mean error over seeds / predicted error): a theory that is off one way."""
    return _over_cells(measurements, cells, lambda off: float(np.mean(off)))


def _over_cells(measurements: Sequence[Measurement[Any]], cells: Any, statistic: Callable[[Array], float]) -> Student:
    predictions, groups = {}, {}
    for point in dict.fromkeys(m.point for m in measurements):
        mine = [m for m in measurements if m.point == point]
        predictions[point] = np.log(mine[0].result["theory"][..., cells]).ravel()
        groups[point] = np.stack([np.asarray(m.result["errors"])[..., cells].ravel() for m in mine])
    return resampled(
        lambda drawn: statistic(
            np.concatenate([np.log(np.maximum(drawn[p].mean(0), 1e-300)) - predictions[p] for p in drawn])
        ),
        groups,
    )


def with_control(data: "TargetData", seed: int) -> "TargetData":
    """Append a last target to the data: the first one, its training labels permuted. No learner can predict it."""
    labels = stream(seed, "permuted labels").permutation(data.Y[:, 0])
    data.Y = np.column_stack([data.Y, labels])
    data.Y_test = np.column_stack([data.Y_test, data.Y_test[:, 0]])
    return data


def linear_floor(target: str, n: int, d: int) -> float:
    """Return the share of the variance that a learner which knows no direction must leave after n samples, on average.

    The target's harmonics span a space of D dimensions that rotations leave whole. A prediction linear in n labels reaches n
    of them, and over all rotations of the target misses 1 - n/D of the variance. D is d for degree one, (d - 1)(d + 2)/2 for
    degree two, d^2 for degree one in the query and in a key. Zero for other targets, where nothing is claimed.
    """
    plane = (d - 1) * (d + 2) / 2
    spans = {"query 1": d, "keys 1": d, "query 2": plane, "keys 2": plane, "correlation 1": d * d, "rotated 1": d * d}
    return max(0.0, 1 - n / spans[target]) if target in spans else 0.0


def guards(
    measurements: Sequence[Measurement[Any]],
    learners: Sequence[str],
    invariant: str,
    targets: Callable[[Any], Sequence[str]],
) -> list[Test]:
    """Return the tests that a leak fails: an error of zero, labels predicted that were permuted, too much from few samples.

    Parameters
    ----------
    measurements : sequence of Measurement
        Results have `sizes`, a curve (sizes, targets) of each learner, and `permuted`: the least error on permuted labels.
    learners : sequence of str
        Names of the curves.
    invariant : str
        That of the learner that knows no direction.
    targets : callable
        From a point to the names of its targets.
    """
    ratios = []
    for m in measurements:
        n, first = int(m.result["sizes"][0]), np.asarray(m.result[invariant])[0]
        floors = [linear_floor(name, n, m.point.d) for name in targets(m.point)]
        if any(floors):
            ratios.append(float(np.mean([e / least for e, least in zip(first, floors, strict=True) if least > 0])))
    smallest = min(float(np.min(m.result[name])) for m in measurements for name in learners)
    return [
        Test(SMALLEST, Exact(smallest), above(0.0)),
        Test(PERMUTED, mean([m.result["permuted"] for m in measurements]), above(NOTHING)),
        *([Test(FLOOR, mean(ratios), above(NOTHING))] if ratios else []),
    ]


def leaks(*curves: str, sizes: Sequence[float] = (0.1, 0.5, 0.8, 1.0), refuted_at: float = 0.8) -> list[Mutation]:
    """Return the mutations that `guards` must refute; a claim whose theory says how large errors are sees smaller leaks."""
    return [
        Mutation(
            "a share {size:g} of the test sequences is known",
            sizes,
            refuted_at,
            changed(
                lambda result, size: {name: np.multiply(result[name], 1 - size) for name in curves if name in result}
            ),
        ),
        Mutation(
            "permuted labels are predicted to {size:g} of the variance",
            (0.95, 0.8, 0.3),
            0.8,
            changed(lambda _, size: {"permuted": size}),
        ),
    ]


def cost_of(sizes: ArrayLike, curve: ArrayLike, level: float) -> float:
    """Return `sample_cost`; errors of zero count as tiny, so that a curve of a leak has a cost too."""
    return sample_cost(sizes, np.maximum(curve, 1e-300), level)


def delayed(sizes: ArrayLike, curve: ArrayLike, factor: float) -> Array:
    """Return the curve of a learner that needs `factor` times as many samples for everything."""
    n, error = np.asarray(sizes, dtype=float), np.asarray(curve, dtype=float)
    columns = [
        np.exp(np.interp(np.log(n / factor), np.log(n), np.log(column))) for column in error.reshape(len(n), -1).T
    ]
    return np.stack(columns, axis=1).reshape(error.shape)


def reached(costs: ArrayLike) -> bool:
    """Return whether all sample costs lie within the sizes that were run."""
    found = np.asarray(costs, dtype=float)
    return bool(np.all(np.isfinite(found) & (found > 0)))


def censored(tests: Sequence[Test], costs: ArrayLike) -> Verdict | None:
    """Return what can be said where some cost was not reached: None if all were.

    Parameters
    ----------
    tests : sequence of Test
        Those that need no cost, such as the error at the largest n, and those whose costs were `reached`.
    costs : array_like

    Raises
    ------
    Undecided
        If none of the tests is refuted.
    """
    found = np.asarray(costs, dtype=float)
    missing = int(np.sum(~np.isfinite(found) | (found <= 0)))
    if not missing:
        return None
    verdict = decide(tests)
    if verdict.outcome is not Outcome.REFUTED:
        raise Undecided(f"{missing} of {found.size} sample costs lie outside of the sizes that were run")
    return verdict


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


def words(target: str) -> str:
    """Return the name of a target as people write it: "keys 2" is "keys, degree 2"."""
    family, _, power = target.rpartition(" ")
    family = {"weighted": "weighted correlation", "rotated": "rotated correlation"}.get(family, family)
    return f"{family}, degree {power}" if power.isdecimal() else target


def draw_curves(axis: "Axes", curves: Sequence[Series], title: str = "") -> None:
    """Draw learning curves in one panel."""
    for one in curves:
        drawn(axis, one)
    axis.set(xlabel="samples n", xscale="log", yscale="log", title=title)


def labels(points: Sequence[Settings]) -> dict[Settings, str]:
    """Return a name for every point: its d, and whatever else differs between them."""
    fields = [
        name for name in type(points[0]).model_fields if name == "d" or len({getattr(p, name) for p in points}) > 1
    ]
    return {p: " ".join(f"{name}={getattr(p, name)}" for name in fields) for p in points}


def kernels_cost(n: int, keys: int, n_test: int) -> Cost:
    """Expect an unbiased and a biased kernel, and a path of factorisations of each."""
    rows = n * (n / 2 + n_test)
    return Cost(0.08 + (2.8e-8 * keys**2 + 2.6e-7) * rows + 1.9e-10 * n**3, int(200_000_000 + 30 * n * (n + n_test)))


@cache
def predicted_curves(own: "Theory", names: tuple[str, ...], sizes: tuple[int, ...], heads: Any = "infinite") -> Array:
    """Return the predicted errors (sizes, targets) over the variance, at the best penalty of each."""
    found = own.curve(list(names), list(sizes), heads=heads)
    if not bool(found.converged.all()):
        raise RuntimeError(f"the theory did not converge at some of {sizes} samples, {heads} heads")
    return np.array(found.error.transpose("n", "target").values)


@cache
def predicted_costs(own: "Theory", names: tuple[str, ...], levels: tuple[float, ...], heads: Any = "infinite") -> Array:
    """Return the predicted sample costs (levels, targets), at the best penalty."""
    return np.array([[own.sample_cost(name, level, heads=heads).value for name in names] for level in levels])


def run_costs(sizes: ArrayLike, curves: ArrayLike, level: float) -> Array:
    """Return the log sample cost of the mean of several runs' curves (runs, sizes), as one jackknife value of each run.

    Theory predicts the mean error over draws; costs of single runs are lower on average, for they cross a level early.
    The mean of these values is the log cost of the mean curve less its bias, their scatter its error, as if they were
    independent runs. Not finite where a mean does not reach the level.
    """
    errors = np.asarray(curves, dtype=float)
    if len(errors) < 2:
        raise Undecided("needs two seeds at least")
    whole, count = np.log(cost_of(sizes, errors.mean(0), level)), len(errors)
    rest = (errors.sum(0) - errors) / (count - 1)
    without = np.log([cost_of(sizes, np.maximum(curve, 0.0), level) for curve in rest])
    return count * whole - (count - 1) * without  # type: ignore[no-any-return]


def require_finite(measurements: Sequence[Measurement[Any]], *arrays: str) -> None:
    """Leave a claim open where an error is infinite: a mean that is infinite would count as lying above any bound."""
    broken = sum(not all(np.isfinite(m.result[name]).all() for name in arrays) for m in measurements)
    if broken:
        raise Undecided(f"{broken} of {len(measurements)} runs have an error that is not finite")


def theory_points(
    m: Measurement[Any], learners: Mapping[str, str], targets: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any], float, float, float | None]]:
    """Yield the points of `curve_points`, with the prediction at each: the array "<learner>_theory" of the result."""
    for array, name in learners.items():
        predictions = np.asarray(m.result[f"{array}_theory"]).T.ravel()
        for (key, settings, n, error, _), prediction in zip(
            curve_points(m, {array: name}, targets), predictions, strict=True
        ):
            yield key, settings, n, error, float(prediction)


def prediction(
    own: "Theory", targets: Sequence[Any], sizes: Sequence[int], ridges: Sequence[float], heads: Any
) -> tuple[Array, bool]:
    """Return the errors of `predicted` for any targets, and whether the theory converged at all of them."""
    found = own.curve(list(targets), list(sizes), heads=heads, ridge=list(ridges), noise=1.0)
    noise = found.from_noise.values
    errors = np.moveaxis(np.concatenate([found.error.values - noise, noise[:1]]), 0, -1)
    return errors, bool(found.converged.all())


def controlled_errors(
    own: "Theory",
    targets: Sequence[Any],
    sizes: Sequence[int],
    ridges: Sequence[float],
    heads: Any,
    seed: int,
    n_test: int = 600,
    noises: int = 6,
) -> tuple[Array, Array]:
    """Return the errors of `simulated_errors` for any targets, and those on a control (penalties, sizes).

    The control is the first target with its training labels permuted: nobody can predict it. Its errors are over the
    variance of the test labels. Targets are names, whose directions the seed draws, or functions of sequences that the
    theory knows.
    """
    from attlas.features.nested_curve import nested_curve

    X = sphere(sizes[-1], own.keys + 1, own.d, stream(seed, "train"))
    X_test = sphere(n_test, own.keys + 1, own.d, stream(seed, "test"))
    functions = [known_targets.named(one, own.d, seed) if isinstance(one, str) else one for one in targets]
    scale = np.sqrt([own.placed(one).variance for one in functions])
    Y, expected = (np.stack([f(x) for f in functions], axis=1) / scale for x in (X, X_test))
    permuted = stream(seed, "permuted labels").permutation(Y[:, :1])
    noise = stream(seed, "label noise").standard_normal((len(X), noises))
    Y = np.hstack([Y, permuted, noise])
    expected = np.hstack([expected, expected[:, :1], np.zeros((n_test, noises))])
    K, cross = _grams(own, X, X_test, heads, int(stream(seed, "heads").integers(2**31)))
    found = nested_curve(K, Y, cross, expected, np.array(sizes), np.asarray(ridges)).test
    count = len(functions)
    errors = np.concatenate([found[..., :count], found[..., count + 1 :].mean(-1, keepdims=True)], axis=-1)
    return errors, found[..., count] / expected[:, 0].var()


def run_logs(errors: ArrayLike) -> Array:
    """Return the log of the mean error over runs (runs, ...), as one jackknife value of each run (see `run_costs`)."""
    found = np.asarray(errors, dtype=float)
    if len(found) < 2:
        raise Undecided("needs two seeds at least")
    rest = (found.sum(0) - found) / (len(found) - 1)
    return len(found) * np.log(np.maximum(found.mean(0), 1e-300)) - (len(found) - 1) * np.log(np.maximum(rest, 1e-300))  # type: ignore[no-any-return]
