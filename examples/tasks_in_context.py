"""Memorising tasks or learning to learn

A layer of linear attention is trained on a number of tasks and then meets a new one in its
context. With few tasks it is good at those and poor at anything else. With many it does
about as well on a task that it has never seen.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from attlas import context

quick = "--quick" in sys.argv  # a small run, to see what it does
d, repeats = (40, 3) if quick else (60, 10)
setting = {"alpha": 4, "tau": 6, "ridge": 0.1, "noise": 0.1}

# %%
# Theory: the error on new tasks and on the tasks of training, against the number of tasks
# over d.

kappa = np.geomspace(0.1, 10, 60)
theory = context.curve(kappa=kappa, **setting)
unseen, known = theory["icl"].values.ravel(), theory["idg"].values.ravel()
print("tasks over d   error on tasks of training   on new tasks (predicting zero: 1.1)")
for at in (0.1, 1.0, 10.0):
    i = int(np.argmin(np.abs(kappa - at)))
    print(f"{kappa[i]:12.1f}   {known[i]:26.2f}   {unseen[i]:12.2f}")

# %%
# Simulation: layers trained on drawn tasks, with exact errors.

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.plot(kappa, unseen, color="#D55E00")
axis.plot(kappa, known, color="#0072B2")
for at in (0.2, 0.5, 1, 2, 5):
    tasks = [
        context.sample(d, setting["alpha"], at, setting["tau"], setting["noise"], seed)
        for seed in range(repeats)
    ]
    errors = [context.fit(task, ridge=setting["ridge"]).errors() for task in tasks]
    for values, colour in (
        ([e.icl for e in errors], "#D55E00"),
        ([e.idg for e in errors], "#0072B2"),
    ):
        spread = np.std(values, ddof=1) / np.sqrt(repeats)
        axis.errorbar(
            at, np.mean(values), spread, fmt="o", color=colour, markersize=5, capsize=2
        )
axis.text(0.13, unseen[3] * 0.93, "new tasks", color="#D55E00", va="top")
axis.text(0.13, known[3] - 0.03, "tasks of training", color="#0072B2", va="top")
axis.axhline(1.1, color="#B0B0B0", linewidth=0.8)
axis.text(10, 1.12, "predicting zero", color="#555555", ha="right", fontsize=9)
axis.set(
    xlabel="tasks of training over d",
    ylabel="error in context",
    xscale="log",
    ylim=(0, None),
)
figure.savefig("tasks_in_context.png", dpi=150)
