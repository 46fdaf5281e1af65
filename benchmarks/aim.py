"""The Bayes-optimal door as multiples of one 2048 x 2048 float64 matrix product (G), measured in the same run."""

import tracemalloc

import numpy as np

from attlas import aim
from timing import best


def descend_some(task, channel, rank, inits, steps):
    aim.descend(task.X, task.y, channel, rank, inits=inits, max_steps=steps, throw=False)


def main():
    a = np.random.default_rng(0).standard_normal((2048, 2048))
    product = best(lambda: a @ a)
    channel = aim.Softmax(2)
    aim.curve(channel, 0.1, 0.5)
    curve = best(lambda: aim.curve(channel, np.linspace(0.001, 0.25, 256), 0.5))
    print(f"softmax curve of 256 points: {curve / product:.2f} G (aim: 5)")
    diagram = best(lambda: aim.curve(channel, np.linspace(0.003, 0.3, 100), np.linspace(0.02, 2, 100)), 1)
    print(f"phase diagram of 100 x 100 points: {diagram / product:.1f} G (aim: 100)")

    alphas, decays = np.linspace(0.01, 0.25, 64), np.geomspace(1e-3, 1, 64)
    diagram = best(lambda: aim.trained_curve(channel, alphas, 0.5, decays), 1)
    print(f"trained, 64 x 64 points of alpha and decay: {diagram / product:.1f} G (aim: 100)")

    d, rho = 200, 0.5
    task = aim.sample(channel, d, 0.3, rho, 0)
    steps = 10
    whole = best(lambda: aim.message_passing(task.X, task.y, channel, rho, max_steps=steps, throw=False), 2) / steps
    flat, other = task.X.reshape(-1, d), np.flip(task.X, axis=1).reshape(-1, d)
    products = best(lambda: flat @ task.S) + best(lambda: flat.T @ other)
    noisy = task.S + np.eye(d) * np.linspace(0, 1, d)
    eigen = best(lambda: np.linalg.eigh(noisy))
    ratio = whole / (products + eigen)
    print(f"message passing iteration, d=200: {ratio:.2f} x its products and eigendecomposition alone (aim: 1.5)")

    rank, inits, steps = d // 2, 8, 5
    whole = best(lambda: descend_some(task, channel, rank, inits, steps), 3) / steps
    W = np.random.default_rng(0).standard_normal((d, rank * inits))
    projected = flat @ W
    products = best(lambda: flat @ W) + best(lambda: flat.T @ projected)
    print(f"descent step, d=200, 8 starts: {whole / products:.2f} x its products alone (aim: 1.5)")

    task = aim.sample(aim.Softmax(3), 300, 0.1, rho, 0)
    tracemalloc.start()
    aim.message_passing(task.X, task.y, aim.Softmax(3), rho, max_steps=2, throw=False)
    peak = tracemalloc.get_traced_memory()[1]
    print(f"message passing at d=300, T=3: {1 + peak / task.X.nbytes:.2f} x the memory of its tokens (bound: 4)")


if __name__ == "__main__":
    main()
