"""What claims about sample cost share: the learning curves of one draw of data, for several targets at once."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from attlas import features, tokens
from attlas.features import targets
from attlas.features.ridge import GRID, nested_curve
from attlas.numerics import stream

Array = NDArray[np.float64]
Target = targets.Query | targets.KeyAverage | targets.Correlation


def target_of(name: str, d: int, seed: int) -> Target:
    """Return "query 2", "keys 2", "correlation 1" or "rotated 1": a family, its power, a drawn direction or rotation."""
    family, power = name.split()
    rng = stream(seed, "target")
    beta = rng.standard_normal(d)
    beta /= np.linalg.norm(beta)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    if family == "query":
        return targets.Query(beta, int(power))
    if family == "keys":
        return targets.KeyAverage(beta, int(power))
    return targets.Correlation(int(power), S=rotation if family == "rotated" else None)


class Draw:
    """Training and test sequences on the sphere, and the normalised values of the targets."""

    def __init__(self, names: Sequence[str], d: int, keys: int, n: int, n_test: int, seed: int) -> None:
        self.X = tokens.sphere(n, keys + 1, d, stream(seed, "train"))
        self.X_test = tokens.sphere(n_test, keys + 1, d, stream(seed, "test"))
        functions = [target_of(name, d, seed) for name in names]
        Y, expected = (np.stack([f(x) for f in functions], axis=1) for x in (self.X, self.X_test))
        self._scale = expected.std(0)
        self.Y, self.expected = Y / self._scale, expected / self._scale

    def errors(self, kernel: Array, cross: Array, sizes: Sequence[int]) -> Array:
        """Return test error over variance (sizes, targets), the penalty chosen by leave-one-out."""
        penalties = np.array(GRID) * np.trace(kernel) / len(kernel)
        return nested_curve(kernel, self.Y, cross, self.expected, np.array(sizes), penalties).chosen()

    def attention(self, sizes: Sequence[int], bias: float = 0.0) -> Array:
        """Return the errors of infinitely many heads."""
        kernel = features.attention_kernel(self.X, bias=bias)
        return self.errors(kernel, features.attention_kernel(self.X_test, self.X, bias=bias), sizes)

    def finite(self, models: Mapping[str, "features.RandomAttentionFeatures | features.RandomMLPFeatures"],
               sizes: Sequence[int]) -> dict[str, Array]:  # fmt: skip
        """Return the errors of each model's features."""
        found = {}
        for name, model in models.items():
            F = model.fit(self.X).transform(self.X)
            found[name] = self.errors(F @ F.T, model.transform(self.X_test) @ F.T, sizes)
        return found


def grid(low: int, high: int, per_doubling: int = 2) -> list[int]:
    """Return sample sizes from low to high, evenly spaced in logarithms."""
    count = max(2, round(per_doubling * np.log2(high / low)) + 1)
    return sorted({round(n) for n in np.geomspace(low, high, count)})
