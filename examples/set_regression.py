"""A regressor for sets: how well does each set of 3 to 12 points match its query? Beside scikit-learn on flat rows."""

import argparse

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV

from attlas import tokens
from attlas.features import RandomAttentionRegressor


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small, for a look at what it does")
    n, heads = (600, 100) if parser.parse_args().quick else (3000, 500)
    rng = np.random.default_rng(0)
    X = tokens.sphere(n, 13, 5, seed=1)  # token 0 is the query, the other 12 the points of the set
    X[:, 1:][rng.integers(3, 13, size=n)[:, None] <= np.arange(12)] = np.nan  # rows of NaN: points that are not there
    y = np.nanmean(np.einsum("nd,nkd->nk", X[:, 0], X[:, 1:]), axis=1)
    flat, half = np.nan_to_num(X.reshape(n, -1)), n // 2

    kernel = GridSearchCV(KernelRidge(kernel="rbf"), {"alpha": [1e-3, 1e-2, 0.1, 1.0], "gamma": [0.01, 0.1, 1.0]})
    print("R² on fresh sets")
    for name, model, rows in (
        (f"attention, {heads} heads", RandomAttentionRegressor(heads, random_state=0), X),
        ("ridge, flat rows", RidgeCV(np.logspace(-3, 3, 7)), flat),
        ("RBF kernel ridge, flat rows", kernel, flat),
    ):
        print(f"{name:28s} {model.fit(rows[:half], y[:half]).score(rows[half:], y[half:]):6.3f}")


if __name__ == "__main__":
    main()
