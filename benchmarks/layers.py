"""The layers against the matrix products they are made of, measured in the same run, on one thread."""

import numpy as np
from threadpoolctl import threadpool_limits

from attlas import features, layers, recovery, tokens
from attlas.aim import teacher
from timing import best


def gemm_rate(dtype):
    """Return the rate of a large matrix product, in operations per second."""
    a = np.ones((1024, 1024), dtype)
    return 2 * 1024**3 / best(lambda: a @ a)


def report(name, operations, seconds, rate, note=""):
    print(f"{name:52s} {operations / seconds / rate:6.0%} of the GEMM rate{note}")


def main():
    d = keys = 16
    n, M = 2000, 1000
    with threadpool_limits(1):
        single, double = gemm_rate(np.float32), gemm_rate(np.float64)
        X = tokens.sphere(n, 1 + keys, d, 0).astype(np.float32)
        heads = features.attention_heads(M, d, 1)
        D = d + 1
        seconds = best(lambda: layers.random_feature_attention(X, heads), 3)
        Xt, W = layers.with_one(X[:200]), heads.astype(np.float32)
        einsum = best(
            lambda: np.einsum(
                "nmi,nik->nmk", np.maximum(np.einsum("nj,mjk,nik->nmi", Xt[:, 0], W, Xt[:, 1:]), 0), Xt[:, 1:]
            ),
            1,
        ) * (n / 200)
        operations = 2 * n * M * (D * D + 2 * keys * D)
        report(
            "random-feature attention, float32, n=2000 M=1000",
            operations,
            seconds,
            single,
            f", {einsum / seconds:.0f} x einsum",
        )

        X = tokens.gaussian(20_000, 2, 200, 0)
        S = teacher(200, 0.5, 1)
        seconds = best(lambda: layers.attention_indices(X, S), 3)
        report("attention indices, n=20000 T=2 d=200", 2 * 20_000 * 2 * 200 * (200 + 2), seconds, double)

        X = tokens.boolean(20_000, 8, 32, 0)
        Theta, W = recovery.planted_layer(3, 32, 1)
        seconds = best(lambda: layers.multi_head_attention(X, Theta, W), 3)
        operations = 3 * 2 * 20_000 * 8 * 32 * (32 + 8 + 8 + 32)
        report("multi-head attention, n=20000 k=8 d=32 m=3", operations, seconds, double)


if __name__ == "__main__":
    main()
