"""Learning in context: points of the theory, fits as multiples of their products, memory, and a plain script beside it."""

import tracemalloc

import numpy as np

from attlas import context
from timing import best

STEPS, TURNS = 20, 25


def theory_points():
    taus = np.linspace(0.1, 4, 200) + 1e-3
    plain = len(taus) / best(lambda: [context.theory(2, 0.5, tau, 0, 0.1) for tau in taus])
    ridged = len(taus) / best(lambda: [context.theory(2, 0.5, tau, 0.05, 0.1) for tau in taus])
    c = 1 / np.arange(1.0, 65)
    structured = 50 / best(lambda: [context.theory(2, 0.5, tau, 0.05, 0.1, spectrum=c) for tau in taus[:50]])
    return plain, ridged, structured


def fit_ratio(d):
    """Time of a step of a fit over that of its two products, taken in turns so that both see the same machine."""
    task = context.sample(d, 2, 2, 2, 0.1, 0)
    Gamma = np.random.default_rng(0).standard_normal((d, d + 1))
    rows = 1024

    def products():
        for _ in range(STEPS):
            for start in range(0, task.n, rows):
                x, h = task.X[start : start + rows], task.H[start : start + rows]
                x @ Gamma
                x.T @ h

    def steps(count):
        context.fit(task, 0.05, "cg", tol=1e-300, max_steps=count, throw=False)

    turns = [(best(products, 1), best(lambda: steps(STEPS + 1), 1), best(lambda: steps(1), 1)) for _ in range(TURNS)]
    bare, whole, start = np.min(turns, axis=0)
    return (whole - start) / bare


def memory(d):
    task = context.sample(d, 2, 2, 2, 0.1, 0)
    data = task.X.nbytes + task.H.nbytes + task.y.nbytes
    tracemalloc.start()
    context.fit(task, 0.05, "cg", tol=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return 1 + peak / data


def plain_script(d, alpha, kappa, tau, ridge, noise, seed):
    """Every context drawn example by example, the whole design, the inverse of its Gram matrix.

    So do the scripts that come with the papers: an inverse with a ridge, a pseudo-inverse without one.
    """
    rng = np.random.default_rng(seed)
    n, k, length = round(tau * d * d), round(kappa * d), round(alpha * d)
    W = rng.standard_normal((k, d))
    w = W[rng.integers(k, size=n)]
    x = rng.standard_normal((n, length + 1, d)) / np.sqrt(d)
    y = np.einsum("nld,nd->nl", x, w) + np.sqrt(noise) * rng.standard_normal((n, length + 1))
    h = np.einsum("nl,nld->nd", y[:, :-1], x[:, :-1]) * d / length
    h = np.column_stack([h, np.mean(y[:, :-1] ** 2, axis=1)])
    design = (x[:, -1, :, None] * h[:, None, :]).reshape(n, -1)
    gram = design.T @ design + n / d * ridge * np.eye(design.shape[1])
    inverse = np.linalg.inv(gram) if ridge else np.linalg.pinv(gram)
    return (inverse @ (design.T @ y[:, -1])).reshape(d, d + 1)


def against_the_script(d, ridge, turns):
    """Tasks, sequences and fit, in turns with the script."""
    alpha, kappa, tau, noise = 2, 2, 2, 0.1
    times = [
        (
            best(lambda: plain_script(d, alpha, kappa, tau, ridge, noise, 0), 1),
            best(lambda: context.fit(context.sample(d, alpha, kappa, tau, noise, 0), ridge), 10),
        )
        for _ in range(turns)
    ]
    plain, ours = np.min(times, axis=0)
    return plain / ours


def main():
    a = np.random.default_rng(0).standard_normal((2048, 2048))
    product = best(lambda: a @ a)
    names = ("without ridge", "with ridge", "structured, d=64")
    for name, rate in zip(names, theory_points(), strict=True):
        print(f"theory {name}: {rate:.0f} points a second, {rate * product:.0f} in one 2048 x 2048 product")
    for d in (40, 80):
        print(f"a step of a fit, d={d}, tau=2: {fit_ratio(d):.2f} x its products alone (aim: 1.5)")
    print(f"memory of a fit, d=80: {memory(80):.2f} x that of its data (bound: 2)")
    for ridge, turns, how in ((0.05, 5, "its inverse"), (0.0, 1, "its pseudo-inverse, without ridge")):
        ratio = against_the_script(40, ridge, turns)
        print(
            f"tasks, sequences and fit at d=40, tau=2: {ratio:.0f} times faster than the whole design and {how} (aim: 30)"
        )


if __name__ == "__main__":
    main()
