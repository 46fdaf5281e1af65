"""The estimator's door, as ratios to something measured in the same run.

With ``--large`` it also fits 500,000 sets, which takes minutes.
"""

import json
import subprocess
import sys
import time
from functools import partial

import numpy as np
from numba import njit
from scipy.linalg import lapack
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from attlas import layers, tokens
from attlas.features import (
    RandomAttentionFeatures,
    RandomAttentionRegressor,
    attention_heads,
    attention_kernel,
    learning_curve,
    targets,
    theory,
)
from attlas.features.frozen_heads import FiniteHeads
from attlas.features.kappa import arc_cosine
from attlas.features.ridge import GRID, factor
from attlas.features.tridiagonal import Tridiagonal
from timing import best

cpu = partial(best, clock=time.process_time)  # of one thread: a shared machine's wall clock tells little

KINDS = (targets.Query, targets.KeyAverage)


def plain_kernel(X):
    """The relu kernel as one would write it in NumPy."""
    Xt = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2)
    K = np.empty((len(X), len(X)))
    for i, row in enumerate(Xt):
        c = Xt[:, 0] @ row[0]
        t = np.einsum("kd,njd->nkj", row[1:], Xt[:, 1:])
        rho = np.clip(c[:, None, None] * t / 4, -1, 1)
        K[i] = ((np.sqrt(1 - rho**2) + rho * (np.pi - np.arccos(rho))) / (2 * np.pi) * t).mean((1, 2))
    return K


def main():
    with threadpool_limits(1):
        fit_times()
        primal_times()
        kernel_times()
        feature_map_times()
    sizes = [50_000, 500_000] if "--large" in sys.argv else [50_000]
    for n in sizes:
        large_fit(n)
    learning_curve_times()
    theory_times()


def learning_curve_times():
    """Every error of a study: 20 targets, 7 penalties, 5 sizes, 2000 training and 1000 test sequences."""
    d = keys = 16
    n, heads = 2000, 1000
    X, X_test = (tokens.sphere(rows, keys + 1, d, seed) for rows, seed in ((n, 0), (1000, 2)))
    functions = [kind(beta, power) for beta in np.eye(d)[:5] for power in (1, 2) for kind in KINDS]
    Y, Y_test = (np.stack([f(x) for f in functions], axis=1) for x in (X, X_test))
    alphas, sizes = np.logspace(-6, 0, 7), [125, 250, 500, 1000, 2000]
    model = RandomAttentionRegressor(heads, fit_intercept=False, random_state=0)
    curve = None

    def ours():
        nonlocal curve
        curve = learning_curve(model, X, Y, X_test, Y_test, sizes=sizes, alphas=alphas)

    study = best(ours, 2)
    F = np.random.default_rng(3).standard_normal((n, heads * (d + 1))).astype(np.float32)
    F_test, K = F[:1000], np.eye(n)
    products = best(lambda: F @ F.T, 1) + best(lambda: F_test @ F.T, 1)
    alone = products + len(alphas) * best(lambda: np.linalg.cholesky(K), 1)
    print(f"learning curve: {study / alone:.1f} x its Gram matrices and Cholesky factors alone (aim: 1.6)")

    peer = None

    def theirs():
        """Features once, in float32; then RidgeCV, which leaves one out, with a penalty per target, at each size."""
        nonlocal peer
        maker = RandomAttentionFeatures(heads, random_state=0, dtype="float32").fit(X)
        Phi, Phi_test = maker.transform(X), maker.transform(X_test)
        ridge = RidgeCV(curve.penalties, fit_intercept=False, alpha_per_target=True)
        peer = [np.mean((ridge.fit(Phi[:m], Y[:m]).predict(Phi_test) - Y_test) ** 2, axis=0) for m in sizes]

    seconds = best(theirs, 1)
    worst = np.max(np.abs(np.array(peer) / curve.chosen() - 1))
    print(
        f"learning curve: {study / seconds:.2f} of scikit-learn's RidgeCV on the same features (aim: 0.6);"
        f" test errors differ by at most {worst:.1e}"
    )


def feature_map_times():
    """The feature map beside a large product, and beside its own three products of a few tokens each."""
    d = keys = 16
    n, heads, D = 2000, 1000, d + 1
    X, W = tokens.sphere(n, keys + 1, d, 0).astype(np.float32), attention_heads(heads, d, 1).astype(np.float32)
    a = np.random.default_rng(0).standard_normal((2048, 2048)).astype(np.float32)
    rate = 2 * 2048**3 / cpu(lambda: a @ a)
    work = 2 * heads * D * (D + 2 * keys)  # of one sequence
    seconds = cpu(lambda: layers.random_feature_attention(X, W))
    few = 50
    einsum = cpu(lambda: np.einsum("mab,na,nib->nmi", W, *_extended(X[:few])), 1) * n / few
    rows = 32
    keys_with_one = np.ones((rows, keys, D), dtype=np.float32)
    columns, out = np.ones((D, D * heads), dtype=np.float32), np.empty((rows, heads, D), dtype=np.float32)
    projected, scores = (np.empty((rows, size, heads), dtype=np.float32) for size in (D, keys))

    def products():
        np.matmul(keys_with_one[:, 0], columns, out=projected.reshape(rows, -1))
        np.matmul(keys_with_one, projected, out=scores)
        np.matmul(scores.transpose(0, 2, 1), keys_with_one, out=out)

    alone = 10 * rows * work / cpu(lambda: [products() for _ in range(10)])
    print(
        f"feature map: {n * work / seconds / rate:.0%} of the GEMM rate (aim: 70 %; its three products alone, in the cache:"
        f" {alone / rate:.0%}), {einsum / seconds:.0f} x einsum (aim: 10)"
    )


def fit_times():
    """A fit of ten penalties in the dual beside its Gram matrix and one Cholesky factor, and other ways along the path."""
    n, heads, d = 2000, 1000, 16
    X, W = tokens.sphere(n, d + 1, d, 0), attention_heads(heads, d, 1)
    y = targets.KeyAverage(np.eye(d)[0], 2)(X)
    model = RandomAttentionRegressor(heads, solver="dual", random_state=0).fit(X[:100], y[:100])
    design = FiniteHeads(W, "relu").on(X)
    features = cpu(lambda: list(FiniteHeads(W, "relu").on(X).by_heads))
    gram, K = cpu(design.gram), design.gram()
    cholesky = cpu(lambda: factor(K, 1.0))
    fit = cpu(lambda: model.fit(X, y))
    print(
        f"fit, ten penalties, dual (n = {n}, p = {heads * (d + 1)}): {(fit - features) / (gram + cholesky):.2f} x its Gram"
        f" matrix and one Cholesky factor without features, {fit / (gram + cholesky):.2f} x with them (aim: 2)"
    )
    print(
        f"  its features alone: {features / (gram + cholesky):.2f} x, its Gram matrix {gram / (gram + cholesky):.2f} x"
    )
    penalties = np.array(GRID) * np.trace(K) / n
    one = cpu(lambda: lapack.dtrtri(factor(K, 1.0), lower=1, overwrite_c=1))
    reduced = Tridiagonal.of(K, penalties)
    ways = {
        "eigendecomposition": cpu(lambda: np.linalg.eigh(K), 1),
        "tridiagonal reduction (taken)": cpu(lambda: Tridiagonal.of(K, penalties))
        + cpu(lambda: reduced.forms(reduced.Qt)),
        "Cholesky factor and inverse of all ten": 10 * one,
        "of five, a bracketed search": 5 * one,
    }
    print("  the path in Cholesky factors: " + ", ".join(f"{name} {t / cholesky:.1f}" for name, t in ways.items()))


def primal_times():
    """The same in the primal, where leaving one out needs a product with the features of every sample."""
    n, heads, d = 20_000, 150, 8
    X, W = tokens.sphere(n, 8, d, 0), attention_heads(heads, d, 1)
    y = targets.KeyAverage(np.eye(d)[0], 2)(X)
    model = RandomAttentionRegressor(heads, solver="primal", random_state=0).fit(X[:100], y[:100])
    design = FiniteHeads(W, "relu").on(X)
    features = cpu(lambda: FiniteHeads(W, "relu").on(X).by_rows, 2)
    gram = cpu(lambda: sum((Phi.T @ Phi for Phi, _ in design.by_rows), start=np.zeros((design.width,) * 2)), 2)
    cholesky = cpu(lambda: factor(np.eye(design.width), 1.0))
    fit = cpu(lambda: model.fit(X, y), 2)
    print(
        f"fit, ten penalties, primal (n = {n}, p = {design.width}): {(fit - features) / (gram + cholesky):.2f} x its Gram"
        f" matrix and one Cholesky factor without features, {fit / (gram + cholesky):.2f} x with them (at least 3: leaving"
        " one out is a product of twice the work of the Gram matrix)"
    )


@njit(fastmath=True)
def _polynomial(rho, times):
    total = np.zeros_like(rho)
    for _ in range(times):
        for i in range(len(rho)):
            total[i] += arc_cosine(rho[i])
    return total


def kernel_times():
    """The infinite-head kernel beside its polynomial alone, on numbers in the cache, and beside plain NumPy."""
    n, keys, d = 1000, 16, 16
    X = tokens.sphere(n, keys + 1, d, 0)
    attention_kernel(X[:10])
    rho = np.linspace(-1, 1, 1024)
    _polynomial(rho, 1)
    pairs = n * (n + 1) // 2 * keys**2
    floor = cpu(lambda: _polynomial(rho, pairs // len(rho)))
    left, right, out = np.ones((384, d + 1)), np.ones((d + 1, 384)), np.empty((384, 384))
    product = cpu(lambda: [np.matmul(left, right, out=out) for _ in range(100)]) / (100 * out.size) * pairs
    kernel, plain = cpu(lambda: attention_kernel(X)), cpu(lambda: plain_kernel(X), 1)
    print(
        f"infinite-head kernel: {kernel / floor:.1f} x its polynomial alone (aim: 2; its inner products alone:"
        f" {product / floor:.1f} x), {plain / kernel:.0f} x plain NumPy (aim: 20)"
    )


def large_fit(n):
    """Time and memory of a fit with ten penalties, in a process of its own."""
    code = (
        "import json, resource, time; import numpy as np; from attlas import tokens;"
        "from attlas.features import RandomAttentionRegressor, targets;"
        f"X = tokens.sphere({n}, 8, 8, 0); y = targets.Correlation(2)(X); m = RandomAttentionRegressor(300, random_state=0);"
        "m.fit(X[:5000], y[:5000]); wall, cpu = time.perf_counter(), time.process_time(); m.fit(X, y);"
        "print(json.dumps([m.solver_, time.perf_counter() - wall, time.process_time() - cpu,"
        " resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    solver, wall, seconds, memory = json.loads(done.stdout)
    print(
        f"{n} sets of 8 tokens, d = 8, 300 heads ({solver}): {wall:.0f} s, {seconds:.0f} s of processors, {memory:.2f} GB"
        f" (aim: {'60 s and 2 GB' if n < 100_000 else '4 GB'})"
    )


def theory_times():
    """Points and curves of the theory, in units of one product of 2048 x 2048 matrices in double precision."""
    a = np.random.default_rng(0).standard_normal((2048, 2048))
    product = best(lambda: a @ a)
    for name, bias in (("RFA", 0.0), ("BRFA", 1.0)):
        for heads in ("infinite", 1000):
            spectrum = best(lambda: theory(16, 16, bias).curve("corr1", 1000, heads=heads, alpha=0.1), 1)  # noqa: B023
            known = theory(16, 16, bias)
            known.curve("corr1", 1000, heads=heads, alpha=0.1)
            point = best(lambda: known.curve("corr1", 1000, heads=heads, alpha=0.1))  # noqa: B023
            sizes = np.geomspace(100, 8000, 30)
            curve = best(lambda: known.curve("corr1", sizes, heads=heads, noise=0.1), 2)  # noqa: B023
            print(
                f"theory, {name}, {heads} heads: in 2048 x 2048 products, first point {spectrum / product:.2f},"
                f" another {point / product:.3f}, curve of 30 n at the best penalty {curve / product:.1f}"
            )


def _extended(X):
    Xt = layers.with_one(X)
    return Xt[:, 0], Xt[:, 1:]


if __name__ == "__main__":
    main()
