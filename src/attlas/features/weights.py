"""How much each sample counts: weights of samples, and of classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import described, numbers, plain, real

Array = NDArray[np.float64]


def sample_weights(given: Any, n: int) -> Array | None:
    """Return the weights (n,), finite and not negative, at least two of them positive; None if all of them are one."""
    weight = batch_weights(given, n)
    if weight is not None and np.count_nonzero(weight) < 2:
        raise InputError("sample_weight has one positive weight only; a fit needs at least two samples that count")
    return weight


def batch_weights(given: Any, n: int) -> Array | None:
    """Return the weights (n,) of a batch, finite and not negative, not all of them zero; None if all of them are one."""
    if given is None:
        return None
    weight = plain(given, "sample_weight", "numbers of shape (n,)")
    weight = numbers(weight.astype(float) if weight.dtype.kind == "b" else weight, "sample_weight", least=0)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise InputError(f"sample_weight must have shape (n,) with n = {n}, one weight per sample; got {weight.shape}")
    if not weight.any():
        raise InputError("sample_weight is zero for all samples; at least one must be positive")
    return None if np.all(weight == 1) else weight


def class_weights(
    given: Any, classes: NDArray[Any], index: NDArray[Any], weight: Array | None, least: int = 2
) -> Array | None:
    """Return the weights of samples times those of their classes, `least` of them positive; None if all are one.

    "balanced" weighs class c by W/(C W_c), W_c the sum of its samples' weights, W that of all, C the number of classes.
    """
    if given is None:
        return weight
    own = np.ones(len(index)) if weight is None else weight
    if isinstance(given, str) and given == "balanced":
        counts = np.bincount(index, own, len(classes))
        factors = np.divide(own.sum(), len(classes) * counts, out=np.zeros(len(classes)), where=counts > 0)
    elif isinstance(given, dict):
        factors = _listed(given, classes)
    else:
        raise InputError(f"class_weight must be None, 'balanced' or a dict of weights by class; got {described(given)}")
    found = own * factors[index]
    if np.count_nonzero(found) < least:
        raise InputError(
            f"class_weight and sample_weight leave {('no sample', 'one sample only')[np.count_nonzero(found)]} that counts"
        )
    return None if np.all(found == 1) else found


def _listed(given: dict[Any, Any], classes: NDArray[Any]) -> Array:
    known = classes.tolist()
    for name in given:
        if name not in known:
            raise InputError(
                f"class_weight has a weight for {described(name)}, which is not among the classes {described(known)}"
            )
    return np.array([real(given.get(name, 1.0), f"class_weight of class {name!r}", least=0) for name in known])
