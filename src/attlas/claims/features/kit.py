"""What claims about sample cost share: the learning curves of one draw of data, for several targets at once."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from attlas import features, tokens
from attlas.claims.claim import Cost, Settings
from attlas.errors import InputError
from attlas.features import targets
from attlas.features.ridge import GRID, nested_curve
from attlas.numerics import stream

Array = NDArray[np.float64]
Target = targets.Query | targets.KeyAverage | targets.Correlation


def target_of(name: str, d: int, seed: int) -> Target:
    """Return "query 2", "keys 2", "correlation 1", "rotated 1", "weighted 1": a family, its power, what it draws.

    "weighted 2" is (1/N) sum <x_0, x_i>^2 <beta, x_i>.
    """
    family, power = name.split()
    rng = stream(seed, "target")
    beta = rng.standard_normal(d)
    beta /= np.linalg.norm(beta)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    if family == "query":
        return targets.Query(beta, int(power))
    if family == "keys":
        return targets.KeyAverage(beta, int(power))
    if family == "weighted":
        return targets.Correlation(int(power), beta=beta, key_power=1)
    return targets.Correlation(int(power), S=rotation if family == "rotated" else None)


class Draw:
    """Training and test sequences on the sphere, the normalised values of the targets, and their variances before."""

    def __init__(self, names: Sequence[str], d: int, keys: int, n: int, n_test: int, seed: int) -> None:
        self.X = tokens.sphere(n, keys + 1, d, stream(seed, "train"))
        self.X_test = tokens.sphere(n_test, keys + 1, d, stream(seed, "test"))
        functions = [target_of(name, d, seed) for name in names]
        Y, expected = (np.stack([f(x) for f in functions], axis=1) for x in (self.X, self.X_test))
        self.variance = expected.var(0)
        self.Y, self.expected = Y / expected.std(0), expected / expected.std(0)

    def attention(self, sizes: Sequence[int], bias: float = 0.0) -> Array:
        """Return test error over variance (sizes, targets) of infinitely many heads, the penalty chosen by leave-one-out."""
        model = features.RandomAttentionRegressor("infinite", bias=bias, fit_intercept=False)
        return features.learning_curve(model, self.X, self.Y, self.X_test, self.expected, sizes=sizes).chosen()

    def finite(self, models: Mapping[str, "features.RandomAttentionFeatures | features.RandomMLPFeatures"],
               sizes: Sequence[int]) -> dict[str, Array]:  # fmt: skip
        """Return the errors of each model's features."""
        found = {}
        for name, model in models.items():
            F = model.fit(self.X).transform(self.X)
            found[name] = self._ridge(F @ F.T, model.transform(self.X_test) @ F.T, sizes)
        return found

    def network(self, sizes: Sequence[int]) -> Array:
        """Return the errors of a network of infinitely many random neurons on the same tokens."""
        return self._ridge(features.mlp_kernel(self.X), features.mlp_kernel(self.X_test, self.X), sizes)

    def _ridge(self, K: Array, cross: Array, sizes: Sequence[int]) -> Array:
        penalties = np.array(GRID) * np.trace(K) / len(K)
        return nested_curve(K, self.Y, cross, self.expected, np.array(sizes), penalties).chosen()


def kernels_cost(n: int, keys: int, n_test: int) -> Cost:
    """Expect an unbiased and a biased kernel, and a path of factorisations of each."""
    pairs = n * (n / 2 + n_test) * keys**2
    return Cost(0.3 + 2.5e-8 * pairs + 6e-9 * n**3, int(200_000_000 + 30 * n * (n + n_test)))


def labels(points: Sequence[Settings]) -> dict[Settings, str]:
    """Return a name for every point: its d, and whatever else differs between them."""
    fields = [
        name for name in type(points[0]).model_fields if name == "d" or len({getattr(p, name) for p in points}) > 1
    ]
    return {p: " ".join(f"{name}={getattr(p, name)}" for name in fields) for p in points}


def grid(low: int, high: int, per_doubling: int = 2) -> list[int]:
    """Return sample sizes from low to high, evenly spaced in logarithms."""
    if not 0 < low < high:
        raise InputError(f"sample sizes must grow from {low}; the largest, {high}, is too small")
    count = max(2, round(per_doubling * np.log2(high / low)) + 1)
    return sorted({round(n) for n in np.geomspace(low, high, count)})
