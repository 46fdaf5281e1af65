"""Mutations: the wrong theories, broken learners and leaks that a claim must refute."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from attlas.claims.claim import Measurement


@dataclass(frozen=True)
class Mutation:
    """One way of being wrong, in several sizes.

    Attributes
    ----------
    name : str
        What is wrong, with its size as ``{size:g}``: "V is {size:g} of what it is".
    sizes : sequence of float
        From hardly wrong to grossly.
    refuted_at : float
        One of them: there, and at every later one, the measurements of the quick tier must refute the claim.
    change : callable, optional
        ``change(measurements, size) -> measurements``: what would have been measured.
    measure : callable, optional
        ``measure(point, seed, size) -> result``, where measurements must be made anew: a broken learner.
    """

    name: str
    sizes: Sequence[float]
    refuted_at: float
    change: Callable[[Any, float], Any] | None = None
    measure: Callable[[Any, int, float], dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        if (self.change is None) == (self.measure is None):
            raise ValueError(f"the mutation {self.name!r} needs either change or measure")
        if self.refuted_at not in self.sizes:
            raise ValueError(f"the mutation {self.name!r} must be refuted at one of its sizes")

    def label(self, size: float) -> str:
        """Return the name with its size."""
        return self.name.format(size=size)

    def applied(
        self, measurements: "Sequence[Measurement[Any]]", size: float, own_seed: Callable[[int], int]
    ) -> "list[Measurement[Any]]":
        """Return what would have been measured if the world were wrong in this way; `own_seed` is the claim's."""
        if self.measure is not None:
            return [replace(m, result=self.measure(m.point, own_seed(m.seed), size)) for m in measurements]
        return list(self.change(measurements, size)) if self.change is not None else []


def changed(change: Callable[[dict[str, Any], float], dict[str, Any]]) -> Callable[[Any, float], Any]:
    """Return a `change` that acts on every result alone: ``change(result, size)`` gives the entries that differ."""
    return lambda measurements, size: [replace(m, result=m.result | change(m.result, size)) for m in measurements]


def scaled(*names: str) -> Callable[[Any, float], Any]:
    """Return a `change` that multiplies these entries of every result by the size."""
    return changed(lambda result, size: {name: np.multiply(result[name], size) for name in names if name in result})
