"""What a bias toward similarity buys

Random heads with query-key matrices near the identity look for keys that resemble the
query. This makes one kind of target cheap and every other kind dearer. Theory says by how
much, at any number of samples, without a simulation.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from attlas import features, tokens
from attlas.features import RandomAttentionRegressor, targets

quick = "--quick" in sys.argv  # a small run, to see what it does
d, keys, sets = 16, 16, 300 if quick else 2000
sizes = np.geomspace(25, 2000, 12 if quick else 40).round().astype(int)
chosen = [50, 100, 200, 400] if quick else [100, 200, 400, 800, 1600]

# %%
# Two targets: a correlation of the query with its keys, and an average of squares over the
# keys.

problems = {
    "does the query match its keys?": "corr1",
    "how far do the keys lie along one axis?": "keys2",
}
theories = {bias: features.theory(d=d, keys=keys, bias=bias) for bias in (0.0, 1.0)}
for title, name in problems.items():
    costs = [theory.sample_cost(name).value for theory in theories.values()]
    print(
        f"{title} {costs[0]:.0f} samples halve the error without a bias, {costs[1]:.0f} with one"
    )

# %%
# Lines are theory; points are fits of the scikit-learn estimator in the limit of infinitely
# many heads.

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), sharey=True, layout="constrained")
for axis, (title, name) in zip(axes, problems.items(), strict=True):
    for (bias, theory), colour in zip(
        theories.items(), ("#0072B2", "#D55E00"), strict=True
    ):
        error = theory.curve(name, n=sizes, heads="infinite", alpha="best").error
        axis.plot(
            sizes,
            error.values.ravel(),
            color=colour,
            label="with a bias" if bias else "without",
        )
        X = tokens.sphere(max(chosen) + sets, 1 + keys, d, seed=1)
        y = targets.named(name, d, seed=0)(X)
        model = RandomAttentionRegressor("infinite", bias=bias)
        test = features.learning_curve(
            model, X[sets:], y[sets:], X[:sets], y[:sets], sizes=chosen
        ).chosen()[:, 0]
        axis.plot(chosen, test / y.var(), "o", color=colour, markersize=5)
    axis.set(title=title, xlabel="samples n", xscale="log", ylim=(0, 1.1))
axes[0].set(ylabel="test error over variance")
axes[0].legend(frameon=False)
figure.savefig("what_a_bias_buys.png", dpi=150)
