"""The estimator's door, as ratios to something measured in the same run."""

import numpy as np

from attlas import layers, tokens
from attlas.features import RandomAttentionRegressor, attention_heads, attention_kernel, learning_curve, targets
from timing import best


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

    few = X[:300]
    attention_kernel(few)
    ratio = best(lambda: plain_kernel(few), 1) / best(lambda: attention_kernel(few))
    print(f"infinite-head kernel: {ratio:.0f} x plain NumPy (aim: 20)")

    beta = np.eye(d)[0]
    Y = np.stack([targets.KeyAverage(beta, 2)(X), targets.Correlation(1)(X)], axis=1)
    X_test = tokens.sphere(1000, keys + 1, d, 2)
    Y_test = np.stack([targets.KeyAverage(beta, 2)(X_test), targets.Correlation(1)(X_test)], axis=1)
    alphas = np.logspace(-6, 0, 7)
    study = best(
        lambda: learning_curve(RandomAttentionRegressor(heads, random_state=0), X, Y, X_test, Y_test, alphas=alphas), 1
    )
    F = np.random.default_rng(3).standard_normal((n, heads * (d + 1))).astype(np.float32)
    F_test, K = F[:1000], np.eye(n)
    alone = (
        best(lambda: F @ F.T, 1) + best(lambda: F_test @ F.T, 1) + len(alphas) * best(lambda: np.linalg.cholesky(K), 1)
    )
    print(f"learning curve, 7 penalties: {study / alone:.1f} x its Gram matrices and Cholesky factors alone (aim: 1.6)")


def _extended(X):
    Xt = layers.with_one(X)
    return Xt[:, 0], Xt[:, 1:]


if __name__ == "__main__":
    main()
