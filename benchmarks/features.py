"""The estimator's door, as ratios to something measured in the same run."""

import numpy as np
from sklearn.linear_model import RidgeCV

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
from timing import best

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
    d = keys = 16
    n, heads = 2000, 1000
    X = tokens.sphere(n, keys + 1, d, 0)
    W = attention_heads(heads, d, 1)
    X32, W32 = X.astype(np.float32), W.astype(np.float32)
    a = np.random.default_rng(0).standard_normal((2048, 2048)).astype(np.float32)
    rate = 2 * 2048**3 / best(lambda: a @ a)
    work = 2 * n * heads * (d + 1) * (d + 1 + 2 * keys)
    seconds = best(lambda: layers.random_feature_attention(X32, W32))
    few = 50
    einsum = best(lambda: np.einsum("mab,na,nib->nmi", W32, *_extended(X32[:few])), 1) * n / few
    print(
        f"feature map: {work / seconds / rate:.0%} of the GEMM rate (aim: 30 %), {einsum / seconds:.0f} x einsum (aim: 10)"
    )

    few = X[:1000]
    attention_kernel(few)
    ratio = best(lambda: plain_kernel(few), 1) / best(lambda: attention_kernel(few))
    print(f"infinite-head kernel: {ratio:.0f} x plain NumPy (aim: 20)")

    # the study: 20 targets, 7 penalties, 5 sizes, 2000 training and 1000 test sequences
    X_test = tokens.sphere(1000, keys + 1, d, 2)
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
    theory_times()


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
