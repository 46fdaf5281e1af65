"""The best layer that knows positions only."""

import numpy as np

from attlas.positional.model import Model, attention


def baseline(model: Model) -> float:
    """Return the test error of the best linear layer y = B x, which attends by place alone.

    B = E T. The error, in the units of `FixedPoint.test`, is 4 sigma^2 (1 - omega)^2 Var sig(S(S + R)) with S and R
    independent N(0, sigma^2). Attention by place can at best equal it.
    """
    sigma = model.token_scale
    step = min(0.05 / sigma, 0.25)  # in standard deviations: the poles of sig are at S(S + R) = +- i pi
    x = np.arange(-8.5, 8.5 + step / 2, step)
    weights = np.exp(-0.5 * x**2) * step / np.sqrt(2 * np.pi)
    first, _ = attention(sigma * x[:, None], sigma * x)
    mean = weights @ first @ weights
    variance = weights @ (first - mean) ** 2 @ weights
    return float(4 * sigma**2 * (1 - model.mixture) ** 2 * variance)
