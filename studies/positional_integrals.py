"""The integrals of the state evolution against brute force: ten million draws through the global proximal map.

    python studies/positional_integrals.py

Its numbers stand in tests/positional/test_averages.py. About a minute on one core.
"""

import numpy as np

from attlas.positional import Model, proximal_map
from attlas.positional.averages import FINE, averages

PUBLISHED = Model(mixture=0.3, encoding=1.0, token_scale=0.5, decay=0.01)
POINTS = {  # V, q, m, theta: near the fixed points at alpha = 1.25, where the map jumps
    "positional": (14.9, 0.047, 0.25, 0.0),
    "semantic": (18.3, 0.082, 0.0, 0.118),
}
NAMES = ("ff", "f_s", "fz", "fw", "loss", "test", "meaning", "place")


def draws(model, V, q, m, theta, count, rng):
    """Return what is averaged, one row for each name, over this many draws."""
    sigma = model.token_scale
    S, R = sigma * rng.standard_normal((2, count))
    sd = np.sqrt(q - (theta / sigma) ** 2)
    x_s, x_r = rng.standard_normal((2, count))
    shift = np.sqrt(2) * model.encoding * m
    w_s, w_r = shift + theta / sigma**2 * S + sd * x_s, theta / sigma**2 * R + sd * x_r
    targets = model.targets(S, R)
    s, r = proximal_map(w_s, w_r, *targets, V, sigma)
    f_s, f_r = (s - w_s) / V, (r - w_r) / V
    fz = f_s * S + f_r * R
    return np.array(
        [
            f_s**2 + f_r**2,
            f_s,
            fz,
            f_s * (w_s - shift) + f_r * w_r,
            model.loss(s, r, *targets),
            model.loss(w_s, w_r, *targets),
            fz * (S * x_s + R * x_r) / sd,
            f_s * x_s / sd,
        ]
    )


def main(total=10_000_000, chunk=500_000):
    for branch, point in POINTS.items():
        rng, first, second = np.random.default_rng(0), np.zeros(len(NAMES)), np.zeros(len(NAMES))
        for _ in range(total // chunk):
            found = draws(PUBLISHED, *point, chunk, rng)
            first, second = first + found.sum(1), second + (found**2).sum(1)
        mean = first / total
        error = np.sqrt((second / total - mean**2) / total)
        rule = averages(PUBLISHED, FINE, *point)
        for name, value, se in zip(NAMES, mean, error, strict=True):
            there = getattr(rule, name)
            print(f"{branch:10s} {name:8s} {value:.8e} +- {se:.1e}   rule {there:.8e}   {(there - value) / se:+.2f}")


if __name__ == "__main__":
    main()
