"""The outputs of a channel as Gaussian measurements of S, which is how training sees them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.channels import Channel, one_layer
from attlas.errors import InputError
from attlas.inputs import described, numbers

_FEWEST = 1e-8  # samples over d^2
_QUIETEST, _LOUDEST = 1e-9, 1e4  # variance of their noise, if there is any


def measurements(channel: Channel, alpha: ArrayLike) -> tuple[NDArray[np.float64], float]:
    """Return A = 2 (measurements)/d^2 and the variance sig2 of their noise, for n = alpha d^2 outputs of a channel.

    Softmax: A = alpha (T^2 + T - 2), no noise. Linear with noise D on every index: A = alpha (T^2 + T), sig2 = D T/(T + 1),
    the mean over indices, where those on the diagonal count half.

    Raises
    ------
    InputError
        If the channel does not give the indices back from y with Gaussian noise of a known variance (`index_noise`), or
        does so with noise and up to a shift: the theory is not derived there.

    Examples
    --------
    >>> from attlas import aim
    >>> aim.measurements(aim.Linear(tokens=2, noise=0.5), alpha=[0.1, 0.2])
    (array([0.6, 1.2]), 0.3333333333333333)
    """
    a, known = numbers(alpha, "alpha", above=0), one_layer(channel, "the theory of training")
    if a.min() < _FEWEST:
        raise InputError(
            f"alpha must be at least {_FEWEST:g} for the theory of training, below which its equations are not resolved;"
            f" got {a.min():g}. As alpha -> 0 nothing is learned, and the error is 1 + rho"
        )
    T, D = known.tokens, known.index_noise
    if D is None or (D and known.centred):
        raise InputError(
            "the theory of training is derived for channels that give the indices back from y with Gaussian noise of a known"
            f" variance (index_noise), as Softmax and Linear do; got {described(channel)}"
        )
    noise = D * T / (T + 1)
    if noise and not _QUIETEST <= noise <= _LOUDEST:
        raise InputError(
            f"noise on a measurement must be 0, or from {_QUIETEST:g} to {_LOUDEST:g} to be resolved; got {noise:g}"
        )
    return a * (T * T + T - 2 * known.centred), noise
