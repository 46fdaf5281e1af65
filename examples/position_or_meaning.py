"""By position or by meaning?

A layer with positional encodings can fit its data in two ways: by the place of a token or
by what it says. With enough samples meaning is the better fit. Training with small steps
does not notice.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from attlas import positional

quick = "--quick" in sys.argv  # a small run, to see what it does
d, seeds = (100, 4) if quick else (250, 12)
model = positional.Model(mixture=0.3, encoding=3.0)
COLOURS = {"positional": "#D55E00", "semantic": "#0072B2"}

# %%
# Both minima exist side by side. Theory says where their losses cross; the fixed points
# come with attlas as a table.

switch = positional.switch(model, tol=1e-4).value
print(f"meaning is the better fit above alpha = {switch:.3f}")
for branch in COLOURS:
    theory = positional.state_evolution(model, alpha=4, branch=branch, tol=1e-4)
    fit = positional.minimise(positional.sample(model, d, alpha=4, seed=0), branch)
    print(
        f"{branch:10s} loss {theory.loss:.4f} in theory, {fit.loss:.4f} at d = {d}; sharpness {fit.sharpness:.1f}"
    )

# %%
# Where does training end? Far above the switch it is still at the positional minimum,
# unless there is no encoding.

for encoding in (3.0, 0.0):
    tasks = [
        positional.sample(positional.Model(0.3, encoding), d, 4, seed)
        for seed in range(seeds)
    ]
    ends = [
        positional.minimise(task, "random", "descent", throw=False).mechanism
        for task in tasks
    ]
    print(
        f"encoding {encoding:g}: descent finds the meaning in {ends.count('semantic')} of {seeds} runs"
    )

# %%
# The loss of both minima: lines are theory, points are fits to drawn data.

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
alphas = np.array([1, 1.5, 2, 2.5, 3, 4, 5, 6, 8])
losses = {
    b: np.array([positional.tabulated(model, a, b).loss for a in alphas]) for b in COLOURS
}
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
for branch, colour in COLOURS.items():
    axis.plot(alphas, losses[branch], color=colour)
    for alpha in (2, 4, 6):
        fits = [
            positional.minimise(positional.sample(model, d, alpha, seed), branch).loss
            for seed in range(seeds)
        ]
        axis.errorbar(
            alpha,
            np.mean(fits),
            np.std(fits) / np.sqrt(seeds),
            fmt="o",
            color=colour,
            markersize=5,
            capsize=2,
        )
    axis.text(
        8.1,
        losses[branch][-1],
        f"by {'meaning' if branch == 'semantic' else 'position'}",
        color=colour,
        va="center",
    )
axis.axvline(switch, color="#555555", linestyle=":")
axis.text(
    switch + 0.08,
    0.03,
    "meaning wins from here on;\ntraining stays by position",
    color="#555555",
    fontsize=9,
)
axis.set(
    xlabel=r"samples $\alpha = n/d$",
    ylabel="loss of the minimum",
    xlim=(0.8, 9.6),
    ylim=(0, None),
)
figure.savefig("position_or_meaning.png", dpi=150)
