"""What the public scripts of the papers on learning in context compute, beside the exact quantities.

    python studies/context_scripts.py

Three things that those scripts do are written down again here: the error of a finite layer with 1 + rho^2 for the square of
the label energy; the effective ridge as the root of a function that is estimated anew from random matrices at every call;
numbers of tasks, examples and sequences cut to integers. The table is in docs/comparison.md.
"""

import numpy as np
from scipy.optimize import brentq

from attlas import context


def closed_form():
    """A number that a public notebook prints, and ours."""
    print("tau = 0.5, alpha = 0.5, kappa = 0.1, rho = 0.1, no ridge: published 1.4898956781741148,", end=" ")
    print("ours", context.theory(alpha=0.5, kappa=0.1, tau=0.5, ridge=0, noise=0.1).icl)


def label_energy(d, alpha, kappa, tau, ridge, noise, seeds=20):
    """Error on new tasks of trained layers: exact; with 1 + noise^2 for the label energy; with (1 + noise)^2 there."""
    found = []
    for seed in range(seeds):
        layer = context.fit(context.sample(d, alpha, kappa, tau, noise, seed), ridge)
        G, values = layer.Gamma, [layer.errors().icl]
        for last in (1 + noise**2, (1 + noise) ** 2):
            B = np.diag(np.r_[np.full(d, 1 + (1 + noise) / layer.tasks.alpha), last])
            values.append(1 + noise - 2 / d * np.trace(G[:, :d]) + np.trace(G @ B @ G.T) / d)
        found.append(values)
    exact, script, mended = np.mean(found, axis=0)
    error = np.std(found, axis=0, ddof=1)[0] / np.sqrt(seeds)
    print(
        f"d = {d}, noise {noise}: exact {exact:.4f}({error:.4f}), scripts {script:.4f}, with (1 + noise)^2 {mended:.4f}"
    )


def noisy_root(d, alpha, kappa, tau, noise, draws, repeats, seed=0):
    """Effective ridge without ridge, tau < 1, as the root of a Monte Carlo estimate that is drawn anew at every call."""
    rng = np.random.default_rng(seed)
    c = np.arange(1.0, d + 1) ** -1.0
    c /= c.mean()
    q, k = (1 + noise) / alpha, int(d * kappa)

    def stieltjes(nu):
        total = 0.0
        for _ in range(draws):
            W = rng.standard_normal((k, d)) * np.sqrt(c)
            total += np.mean(1 / (np.linalg.eigvalsh(W.T @ W / k) + nu))
        return total / draws

    def objective(xi):
        return xi * stieltjes(q + xi) + tau - 1

    roots = [brentq(objective, 0, 50) for _ in range(repeats)]
    exact = context.theory(alpha, kappa, tau, 0, noise, spectrum=c).effective
    spread = np.std(roots, ddof=1)
    print(f"{draws} matrices a call: {np.mean(roots):.5f}, scattering by {spread:.5f}; exact {exact:.12f}")


def cut():
    """Numbers that are cut instead of rounded."""
    for ratio, d in ((0.29, 100), (0.57, 100)):
        print(f"{ratio} x {d}: cut {int(ratio * d)}, rounded {round(ratio * d)}")


if __name__ == "__main__":
    closed_form()
    for noise in (0.1, 0.5):
        for d in (20, 40):
            label_energy(d, 2, 0.5, 2, 0.01, noise)
    for draws, repeats in ((10, 12), (100, 6)):
        noisy_root(40, 4, 0.5, 0.5, 0.1, draws, repeats)
    cut()
