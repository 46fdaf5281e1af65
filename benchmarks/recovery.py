"""The recovery door: seconds to be right, against what a user would try, and a step as a multiple of its own products."""

import time

import numpy as np
from scipy.optimize import least_squares

from attlas import layers, tokens
from attlas.numerics import stream
from attlas.recovery import planted_layer
from attlas.recovery.examples import Examples
from attlas.recovery.search import gradient_search, random_start
from attlas.recovery.variable_projection import (
    _normal_equations,
    eliminate,
    variable_projection,
    work_of_a_step,
)
from timing import best


def task(heads, d, k, n, seed=0):
    Theta, W = planted_layer(heads, d, stream(seed, "teacher"), 3.0)
    X = tokens.boolean(n, k, d, stream(seed, "data"))
    return Examples.of(X, layers.multi_head_attention(X, Theta, W))


def seconds(data, heads):
    """To a relative residual of 1e-10, from the first random starts that reach it."""
    began = time.perf_counter()
    for number in range(10):
        start = random_start(heads, data.X.shape[2], stream(number, "start"))
        if variable_projection(data, start, tol=1e-10).residual <= 1e-10:
            return time.perf_counter() - began
    return np.inf


def exponent(name, values, **fixed):
    runs = []
    for value in values:
        sizes = {"heads": 2, "d": 8, "k": 4, "n": 600} | fixed | {name: value}
        runs.append(np.median([seconds(task(**sizes, seed=s), sizes["heads"]) for s in range(3)]))
    slope = np.polyfit(np.log(values), np.log(runs), 1)[0]
    shown = ", ".join(f"{value}: {run:.2f} s" for value, run in zip(values, runs, strict=True))
    print(f"time to 1e-10 over {name}: {shown}; exponent {slope:.1f}")


def scipy_search(data, start):
    """W by linear least squares for every Theta, Theta by SciPy's least_squares: what one would write oneself."""
    X, d = data.X, data.X.shape[2]

    def residual(theta):
        read = [layers.softmax(X @ each @ X.transpose(0, 2, 1)) @ X for each in theta.reshape(-1, d, d)]
        F, Y = np.concatenate(read, axis=2).reshape(-1, len(read) * d), data.Y.reshape(-1, data.Y.shape[2])
        return (F @ np.linalg.lstsq(F, Y, rcond=None)[0] - Y).ravel()

    return least_squares(residual, start.ravel(), method="lm", xtol=1e-12, ftol=1e-12, gtol=1e-12).fun


def against_scipy(heads, d, k=4, n=400):
    data = task(heads, d, k, n)
    mine = seconds(data, heads)
    began = time.perf_counter()
    left = scipy_search(data, random_start(heads, d, stream(0, "start")))
    took = time.perf_counter() - began
    residual = np.linalg.norm(left) / np.linalg.norm(data.Y)
    print(f"SciPy's least_squares, m = {heads}, d = {d}, n = {n}: {residual:.0e} after {took / mine:.0f} x the time")


def main():
    heads, d, k, n = 3, 8, 4, 2000
    data = task(heads, d, k, n)
    mine = seconds(data, heads)
    print(f"variable projection to 1e-10, m = {heads}, d = {d}, k = {k}, n = {n}: {mine:.2f} s")
    for method in ("lbfgs", "adam"):
        began = time.perf_counter()
        fit = gradient_search(data, heads, method, stream(0, "start"))
        took = time.perf_counter() - began
        print(f"{method}: {fit.residual:.1e} after {took:.1f} s, {took / mine:.1f} x the time of variable projection")

    against_scipy(1, 4)
    against_scipy(2, 6)

    Theta = random_start(heads, d, stream(0, "start"))
    model = eliminate(data, Theta)

    def step():
        _normal_equations(data, Theta, model)
        eliminate(data, Theta)

    a = np.random.default_rng(0).standard_normal((1024, 1024))
    rate = 2 * 1024**3 / best(lambda: a @ a)
    ratio = best(step) / (work_of_a_step(heads, d, d, k, n * k) / rate)
    print(f"one step: {ratio:.1f} x its own operations at the rate of a matrix product")
    exponent("d", (4, 6, 8, 12))
    exponent("k", (2, 4, 8, 16))
    exponent("heads", (1, 2, 3, 4))


if __name__ == "__main__":
    main()
