"""The output error of softmax and hardmax rows, from the law of one row.

In a row, h_11 has variance 2 Q and the others Q, all independent; omega shares the part (Q - V)/Q of each. Softmax and
argmax see differences only.
"""

import numpy as np

from attlas import layers
from attlas.aim.channels.channel import Array

_LOG2_SAMPLES = 15
_SHIFTS = 8


def replica_error(T: int, V: float, Q: float, beta: float, plugin: bool = False) -> float:
    """Return E ||y - y_hat||^2 over T rows of softmax(beta h); y_hat is the posterior mean, or y(omega) if `plugin`.

    An infinite beta is hardmax (three and more tokens).

    For the posterior mean E ||y - E[y | omega]||^2 = (1/2) E ||y - y'||^2 with two replicas sharing omega. T = 2 is a
    two-dimensional trapezoidal sum, exact to rounding; T >= 3 a randomised quasi-Monte Carlo mean, whose standard error
    (`replica_error_with_error`) is 4e-4 of the value for softmax at beta = 1, up to 1e-2 for steep rows, and for hardmax
    2e-3 at V = 0.4, 1e-2 at V = 1e-4.
    """
    if V == 0:
        return 0.0
    return _two_tokens(V, Q, beta, plugin) if T == 2 else replica_error_with_error(T, V, Q, beta, plugin)[0]


def replica_error_with_error(T: int, V: float, Q: float, beta: float, plugin: bool = False) -> tuple[float, float]:
    """Return the error of T rows and its standard error, from independently shifted Sobol points."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    scale = np.sqrt(1 + (np.arange(T) == 0))
    parts = 2 if plugin else 3
    means = []
    for seed in range(_SHIFTS):
        points = qmc.Sobol(parts * T, seed=seed).random_base2(_LOG2_SAMPLES)
        z = ndtri(points).reshape(-1, parts, T) * scale
        omega = np.sqrt(max(Q - V, 0.0)) * z[:, 0]
        first = _row(omega + np.sqrt(V) * z[:, 1], beta)
        second = _row(omega if plugin else omega + np.sqrt(V) * z[:, 2], beta)
        means.append((1.0 if plugin else 0.5) * T * float(np.mean(np.sum((first - second) ** 2, axis=-1))))
    return float(np.mean(means)), float(np.std(means, ddof=1) / np.sqrt(_SHIFTS))


def _two_tokens(V: float, Q: float, beta: float, plugin: bool) -> float:
    """Return 4 E_m Var_xi[sigma(beta (m + sqrt(3V) xi))], m ~ N(0, 3q), by trapezoidal sums, which converge geometrically.

    The logistic function has poles at distance pi/beta from the real axis, which sets the steps.
    """
    from scipy.special import expit

    a, b = np.sqrt(3 * max(Q - V, 0.0)), np.sqrt(3 * V)
    xi = _grid(min(0.3, 0.5 / (beta * b)))
    # the posterior mean is smooth on the scale of b; the output at omega is as steep as the logistic function itself
    finest = 0.0 if plugin else 0.3 * b / a if a > 0 else 0.0
    m = _grid(min(0.3, max(0.5 / (beta * a), finest))) if a > 0 else np.zeros(1)
    weight_xi, weight_m = _normal_weights(xi), _normal_weights(m)
    square = 0.0
    for rows in np.array_split(np.arange(len(m)), max(1, len(m) * len(xi) >> 22)):
        y = expit(beta * (a * m[rows, None] + b * xi))
        centre = expit(beta * a * m[rows]) if plugin else y @ weight_xi
        square += float(weight_m[rows] @ (((y - centre[:, None]) ** 2) @ weight_xi))
    return 4 * square


def _grid(step: float) -> Array:
    count = int(np.ceil(9.0 / step))
    return np.linspace(-9.0, 9.0, 2 * count + 1)


def _normal_weights(x: Array) -> Array:
    w = np.exp(-0.5 * x * x)
    return np.asarray(w / w.sum())


def _row(h: Array, beta: float) -> Array:
    return layers.hardmax(h) if np.isinf(beta) else layers.softmax(h, beta)
