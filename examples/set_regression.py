"""A regressor for sets

How well does each set of 3 to 12 points match its query? The points come in no order and in
any number, so a model of flat rows has little to hold on to. A layer of frozen random
attention heads learns it in about a second.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV

from attlas import tokens
from attlas.features import RandomAttentionRegressor

quick = "--quick" in sys.argv  # a small run, to see what it does
n, heads = (600, 100) if quick else (3000, 500)

# %%
# Token 0 is the query, the other 12 are the points of the set. Rows of NaN stand for points
# that are not there.

rng = np.random.default_rng(0)
X = tokens.sphere(n, 13, 5, seed=1)
X[:, 1:][rng.integers(3, 13, size=n)[:, None] <= np.arange(12)] = np.nan
y = np.nanmean(np.einsum("nd,nkd->nk", X[:, 0], X[:, 1:]), axis=1)
flat, half = np.nan_to_num(X.reshape(n, -1)), n // 2

# %%
# Every model has its penalty chosen on the first half of the sets, and is judged on the
# second.

kernel = GridSearchCV(
    KernelRidge(kernel="rbf"), {"alpha": [1e-3, 1e-2, 0.1, 1.0], "gamma": [0.01, 0.1, 1.0]}
)
models = {
    f"attention, {heads} heads": (RandomAttentionRegressor(heads, random_state=0), X),
    "ridge, flat rows": (RidgeCV(np.logspace(-3, 3, 7)), flat),
    "RBF kernel ridge, flat rows": (kernel, flat),
}
print("R² on fresh sets")
predicted = {}
for name, (model, rows) in models.items():
    print(
        f"{name:28s} {model.fit(rows[:half], y[:half]).score(rows[half:], y[half:]):6.3f}"
    )
    predicted[name] = model.predict(rows[half:])

# %%
# Predictions against the truth: a perfect model lies on the diagonal.

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(
    1, 3, figsize=(9, 3.2), sharex=True, sharey=True, layout="constrained"
)
for axis, (name, values), colour in zip(
    axes, predicted.items(), ("#0072B2", "#D55E00", "#009E73"), strict=True
):
    axis.plot(y[half:], values, ".", color=colour, markersize=3)
    axis.axline((0, 0), slope=1, color="#555555", linewidth=0.8)
    axis.set(title=name, xlabel="truth", xlim=(-0.6, 0.6), ylim=(-0.6, 0.6))
axes[0].set(ylabel="prediction")
figure.savefig("set_regression.png", dpi=150)
