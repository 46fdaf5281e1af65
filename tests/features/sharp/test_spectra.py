"""Spectra against counting, against each other, and against the eigenvalues of large Gram matrices."""

from itertools import product

import numpy as np
import pytest

from attlas import tokens
from attlas.features import attention_kernel, mlp_kernel, theory
from attlas.features.scoring import scoring_of
from attlas.features.sharp import biased, unbiased
from attlas.features.sharp.harmonics import harmonics
from attlas.features.sharp.head_laws import head_laws, lengths
from attlas.features.sharp.offsets import offsets
from attlas.features.sharp.rotation_blocks import dimension, rotation_block
from attlas.features.sharp.traces import traces

RELU = scoring_of("relu")


def test_published_eigenvalues():
    """The table of the derivation, d = N = 8."""
    found = unbiased.eigenvalues(8, 8, RELU, 5)
    whole = found.vector + found.scalar
    table = {
        (0, 0): (2.372838e-1, 2.280392e-1),
        (1, 0): (1.054452e-2, 9.244633e-3),
        (0, 1): (4.734945e-3, 1.155579e-3),
        (1, 1): (3.106956e-4, 1.624859e-4),
        (2, 0): (1.830061e-4, 1.486080e-4),
        (0, 2): (2.498424e-4, 1.857599e-5),
        (1, 2): (3.685600e-5, 4.299770e-6),
        (2, 2): (1.378754e-6, 5.016384e-7),
    }
    for label, (lam, scalar) in table.items():
        assert whole[label] == pytest.approx(lam, rel=5e-7)
        assert found.scalar[label] == pytest.approx(scalar, rel=5e-7)
    assert traces(8, 8, RELU).sum() == pytest.approx(0.41232090, abs=5e-9)
    assert traces(4, 4, RELU).sum() == pytest.approx(0.51437560, abs=1e-8)
    assert traces(16, 16, RELU).sum() == pytest.approx(0.35911946, abs=1e-8)
    assert traces(8, 8, RELU, bias=1.0).sum() == pytest.approx(0.4480291, abs=5e-8)


@pytest.mark.parametrize(("bias", "scoring"), [(0.0, "relu"), (1.5, "relu"), (0.0, "exp")])
def test_traces_are_means_of_the_diagonal(bias, scoring):
    diagonal = np.diag(attention_kernel(tokens.sphere(225, 6, 6, 3), bias=bias, activation=scoring))
    error = diagonal.std(ddof=1) / 15
    assert traces(6, 5, scoring_of(scoring), bias).sum() == pytest.approx(diagonal.mean(), abs=4 * error)


@pytest.mark.parametrize("offset", [-0.8, 0.3])
def test_traces_at_an_offset_are_means_over_heads(offset):
    """Heads whose last entry is fixed."""
    rng = np.random.default_rng(0)
    d, N, M = 6, 4, 4000
    X, W = tokens.sphere(M, N + 1, d, 1), rng.standard_normal((M, d + 1, d + 1)) / 2
    W[:, d, d] = offset
    Xt = np.concatenate([X, np.ones((M, N + 1, 1))], axis=2)
    weights = np.maximum(np.einsum("ma,mab,mib->mi", Xt[:, 0], W + 0.7 * np.diag([1] * d + [0]), Xt[:, 1:]), 0)
    features = np.einsum("mi,mia->ma", weights, Xt[:, 1:]) / N
    for value, part in zip(traces(d, N, RELU, 0.7, offset), (features[:, :d], features[:, d:]), strict=True):
        squares = (part**2).sum(1)
        assert value == pytest.approx(squares.mean(), abs=4 * squares.std() / np.sqrt(M))


def quadratic_forms(kernel, d, N, draws=20, n=250):
    """Return mean and standard error of f^T K f/(n (n - 1)), the diagonal left out, for normalised functions f.

    Functions: components of the query, of the key average, of its contrast, of query times key average, and their
    diagonal sum.
    """
    found = []
    for seed in range(draws):
        X = tokens.sphere(n, N + 1, d, seed)
        K = kernel(X)
        K -= np.diag(np.diag(K))
        K -= K.sum() / (n * (n - 1)) * (1 - np.eye(n))  # the constant, large, is told by the others' zero mean
        x, keys = np.sqrt(d) * X[:, 0], np.sqrt(d) * X[:, 1:]
        mean = keys.sum(1) / np.sqrt(N)
        functions = {
            "query": x,
            "keys": mean,
            "contrast": (keys[:, 0] - keys[:, 1]) / np.sqrt(2),
            "pairs": (x[:, :, None] * mean[:, None, :]).reshape(n, -1),
            "correlation": (x * mean).sum(1)[:, None] / np.sqrt(d),
        }
        forms = {name: np.einsum("ik,ij,jk->k", f, K, f, optimize=True).mean() for name, f in functions.items()}
        forms["query with keys"] = np.einsum("ik,ij,jk->k", x, K, mean, optimize=True).mean()
        found.append([form / (n * (n - 1)) for form in forms.values()])
    values = np.array(found)
    return dict(zip(forms, zip(values.mean(0), values.std(0, ddof=1) / np.sqrt(draws), strict=True), strict=True))


def test_eigenvalues_of_attention_are_those_of_gram_matrices():
    found = quadratic_forms(attention_kernel, 5, 4)
    exact = unbiased.eigenvalues(5, 4, RELU, 3)
    lam = exact.vector + exact.scalar
    for name, value in {"query": lam[1, 0], "keys": lam[0, 1], "pairs": lam[1, 1], "correlation": lam[1, 1]}.items():
        mean, error = found[name]
        assert abs(mean - value) < 4 * error
        assert error < 0.15 * value
    for name in ("query with keys", "contrast"):
        assert abs(found[name][0]) < 4 * found[name][1]


def test_block_operators_are_those_of_gram_matrices():
    """Entries of the operator, off the diagonal too."""
    d, N, bias = 5, 4, 2.0
    found = quadratic_forms(lambda X: attention_kernel(X, bias=bias), d, N)
    blocks = {block.name: block for block in biased.blocks(d, 2, 12)}
    operators = {name: biased._exact(block, d, N, RELU, bias).sum(0) for name, block in blocks.items()}

    def entry(name, left, right):
        basis = blocks[name].basis
        return operators[name][basis.index(left), basis.index(right)]

    pairs = sum(blocks[name].dimension * entry(name, (1, 1), (1, 1)) for name in ((0, 0), (2, 0), (1, 1))) / d**2
    expected = {
        "query": entry((1, 0), (1, 0), (1, 0)),
        "keys": entry((1, 0), (0, 1), (0, 1)),
        "query with keys": entry((1, 0), (1, 0), (0, 1)),
        "correlation": entry((0, 0), (1, 1), (1, 1)),
        "pairs": pairs,
    }
    for name, value in expected.items():
        mean, error = found[name]
        assert abs(mean - value) < 4 * error
        assert error < 0.15 * value


def test_eigenvalues_of_networks_and_of_positions_are_those_of_gram_matrices():
    for kernel, predicted, names in (
        (mlp_kernel, theory(5, 4, learner="network"), {"query": "(1, 0)", "contrast": "(1, 0)", "pairs": "(1, 1)"}),
        (
            lambda X: position_kernel(X, 0.7),
            theory(5, 4, positions=0.7),
            {"query": "(1, 0)", "keys": "(0, 1)", "contrast": "(0, 1) contrast", "pairs": "(1, 1)"},
        ),
    ):
        found = quadratic_forms(kernel, 5, 4)
        for name, sector in names.items():
            value = float(predicted.spectrum().eigenvalue.sel(sector=sector))
            mean, error = found[name]
            assert abs(mean - value) < 4 * error
            assert error < 0.15 * value


def position_kernel(X, weight):
    """The relu kernel with one-hot positions, as its definition says."""
    N = X.shape[1] - 1
    u = 1 + X[:, 0] @ X[:, 0].T
    K = np.zeros((len(X), len(X)))
    for i, j in product(range(1, N + 1), repeat=2):
        t = 1 + X[:, i] @ X[:, j].T + weight * (i == j)
        rho = np.clip(u * t / (2 * (2 + weight)), -1, 1)
        K += (np.sqrt(1 - rho**2) + rho * (np.pi - np.arccos(rho))) / (2 * np.pi) * t / N**2
    return K


@pytest.mark.parametrize("scoring", ["relu", "sigmoid", "exp", "erf", "tanh", "relu2", np.cos])
def test_sectors_and_the_flat_one_make_the_trace(scoring):
    for predicted in (theory(6, 5, scoring=scoring), theory(6, 5, scoring=scoring, positions=0.5)):
        table = predicted.spectrum()
        assert float((table.eigenvalue * table.multiplicity).sum()) == pytest.approx(table.attrs["trace"], rel=1e-9)
        assert 0 <= table.attrs["cut"] < 3e-3 * table.attrs["trace"]


def test_dimensions_of_blocks_are_counted():
    """Products of harmonics of degrees a and b fall into blocks: N_a N_b functions in all."""
    for d in (5, 8, 19):
        for a, b in product(range(5), repeat=2):
            total = 0.0
            for L2 in range(min(a, b) + 1):
                for L1 in range(L2, a + b - L2 + 1):
                    if (a, b) in rotation_block(L1, L2, d, a + b + (L1 + L2 - a - b) % 2).basis:
                        total += dimension(L1, L2, d)
            assert total == harmonics(a, d) * harmonics(b, d)


def test_multiplication_in_blocks():
    """W is symmetric, is Jacobi's matrix in (0, 0), and its powers have the moments of <x_0, x>."""
    for L1, L2 in ((0, 0), (3, 0), (4, 2), (6, 0)):
        W = rotation_block(L1, L2, 8, 14).W
        assert np.abs(W - W.T).max() < 1e-13
        assert np.abs(np.linalg.eigvalsh(W)).max() < 1  # a cosine
    a = np.arange(6)
    jacobi = np.sqrt((a + 1) * (a + 6) / ((2 * a + 8) * (2 * a + 6)))
    np.testing.assert_allclose(rotation_block(0, 0, 8, 12).W.diagonal(1), jacobi, rtol=1e-13)
    rng = np.random.default_rng(0)
    x, y = (z / np.linalg.norm(z, axis=1)[:, None] for z in rng.standard_normal((2, 200_000, 5)))
    w, block = (x * y).sum(1), rotation_block(2, 0, 5, 14)
    start = np.zeros(len(block.basis))
    start[block.basis.index((0, 2))] = 1
    q = np.sqrt(harmonics(2, 5)) * ((y[:, 0] ** 2 - 0.2) / 0.8)  # a normalised harmonic of the key
    for p in (1, 2, 4):
        simulated = w**p * q**2
        predicted = start @ np.linalg.matrix_power(block.W, p) @ start
        assert predicted == pytest.approx(simulated.mean(), abs=4 * simulated.std() / np.sqrt(len(w)))


def test_no_bias_gives_sectors_back():
    exact = unbiased.eigenvalues(7, 5, RELU, 13)
    for block in biased.blocks(7, 6, 12):
        found = biased._exact(block, 7, 5, RELU, 0.0)
        for part, expected in zip(found, (exact.vector, exact.scalar), strict=True):
            values = [expected[label] for label in block.basis]
            np.testing.assert_allclose(part, np.diag(values), atol=2e-9)


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_groups_average_to_the_whole(bias):
    predicted = theory(8, 8, bias, offset_nodes=10)
    for whole, groups in zip(predicted.infinite.parts[:3], predicted.finite.parts[:3], strict=False):
        if bias:
            mean = np.tensordot(predicted.finite.weights, groups.L, 1)
            np.testing.assert_allclose(mean, whole.L[0], atol=2e-8)
        else:
            index = [whole.labels.index(label) for label in groups.labels[:-1]]
            np.testing.assert_allclose(predicted.finite.weights @ groups.L[:, :-1], whole.L[0, index], atol=1e-12)
    assert predicted.finite.trace == pytest.approx(predicted.infinite.trace, rel=1e-9)


def test_groups_are_what_heads_with_that_offset_do():
    """The mean of features times a harmonic, squared and summed over heads of one offset: E over heads of <phi, Y>^2."""
    d, M = 5, 6000
    rng = np.random.default_rng(1)
    T = unbiased.offset_moments(d, 3)
    for omega in (0.9, -0.6):
        c = RELU.coefficients(omega, np.sqrt(0.75), T.shape[1]) ** 2
        vector, scalar = np.tensordot(T, c, (1, 0))
        W = rng.standard_normal((500, d + 1, d + 1)) / 2
        W[:, d, d] = omega
        X = tokens.sphere(M, 2, d, rng)
        Xt = np.concatenate([X, np.ones((M, 2, 1))], axis=2)
        weights = np.maximum(np.einsum("nmb,nb->nm", np.tensordot(Xt[:, 0], W, (1, 1)), Xt[:, 1]), 0)
        for a, b in ((0, 0), (1, 0)):
            Y = np.sqrt(d) * X[:, 0, 0] if a else np.ones(M)
            means = (weights * Y[:, None]).mean(0)  # of the scalar feature, for every head
            noise = (weights * Y[:, None]).var(0) / M
            squares = means**2 - noise
            assert scalar[a, b] == pytest.approx(squares.mean(), abs=4 * squares.std() / np.sqrt(len(W)))
            vectors = (weights * Y[:, None]).T @ X[:, 1] / M
            squares = (vectors**2).sum(1) - d * noise / d
            assert vector[a, b] == pytest.approx(squares.mean(), abs=4 * squares.std() / np.sqrt(len(W)))


def test_head_laws_average_to_the_whole():
    """Before they are scaled to it: to the quadrature over lengths."""
    laws, exact = head_laws(8, 6, RELU, 5, 8, 3), unbiased.eigenvalues(8, 6, RELU, 5)
    for part, whole, trace in ((0, exact.scalar, exact.traces[1]), (3, exact.vector, exact.traces[0])):
        mean = np.tensordot(laws.shares, laws.L[part], 1)
        np.testing.assert_allclose(mean[:3, :3], whole[:3, :3], rtol=1e-4)
        assert laws.shares @ laws.traces[part] == pytest.approx(trace, rel=1e-5)


def test_head_laws_are_what_such_heads_do():
    """Scalar feature, value along the head's key direction and their product, in two sectors, of heads of one law."""
    d, M, heads = 5, 6000, 400
    laws = head_laws(d, 1, RELU, 3, 2, 2)
    places, (size, _) = offsets(2)[0], lengths(d, 2)
    rng = np.random.default_rng(2)
    for law, (omega, first, second) in enumerate(product(places, size, size)):
        if law not in (0, 6):
            continue
        W = rng.standard_normal((heads, d + 1, d + 1)) / 2
        W[:, d, d] = omega
        for row, length in ((W[:, :d, d], first), (W[:, d, :d], second)):
            row *= length / np.linalg.norm(row, axis=1)[:, None]
        X = tokens.sphere(M, 2, d, rng)
        Xt = np.concatenate([X, np.ones((M, 2, 1))], axis=2)
        weights = np.maximum(np.einsum("nmb,nb->nm", np.tensordot(Xt[:, 0], W, (1, 1)), Xt[:, 1]), 0)
        along = weights * (X[:, 1] @ (W[:, d, :d] / second).T)
        for a, Y in ((0, np.ones(M)), (1, np.sqrt(d) * X[:, 0, 0])):
            scalar, parallel = (value * Y[:, None] for value in (weights, along))
            pairs = ((scalar, scalar), (parallel, parallel), (scalar, parallel))
            for part, (left, right) in enumerate(pairs):
                products = left.mean(0) * right.mean(0) - ((left * right).mean(0) - left.mean(0) * right.mean(0)) / M
                error = products.std() / np.sqrt(heads)
                assert laws.L[part, law, a, 0] == pytest.approx(products.mean(), abs=4 * error)
