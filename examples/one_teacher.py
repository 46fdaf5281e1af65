"""One teacher, every learner

Put all learners of the atlas before the same attention layer and ask who needs how many
samples. The measurements come with attlas, so the figure takes seconds.
"""

import matplotlib.pyplot as plt

from attlas import lab

(found,) = lab.verdicts(["lenses.one-teacher"], "full", shipped=True)
series = found.claim.series(found.measurements())
print(f"{found.claim.id}: {found.status}, {found.verdict.strength_text}")

# %%
# Each learner at its largest dimension; the dashed line is the limit that no learner can
# pass. Above 1 a learner does worse than a constant.

NAMES = {
    "amp": ("message passing", "#009E73"),
    "averaged": ("averaged descent", "#E69F00"),
    "single": ("one run of descent", "#CC79A7"),
    "trained": ("training with weight decay", "#D55E00"),
    "varpro": ("variable projection", "#56B4E9"),
    "kernel": ("frozen random heads", "#0072B2"),
}
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
largest = {}
for one in series:
    if one.name in NAMES and one.settings["d"] >= largest.get(one.name, one).settings["d"]:
        largest[one.name] = one
for key, one in largest.items():
    name, colour = NAMES[key]
    axis.errorbar(
        one.x,
        one.mean,
        one.standard_error,
        fmt="o-",
        color=colour,
        markersize=5,
        linewidth=1,
        label=name,
    )
limit = dict(
    sorted({x: t for one in series for x, t in zip(one.x, one.theory, strict=True)}.items())
)
axis.plot(
    limit.keys(), limit.values(), color="#000000", linestyle="--", label="best possible"
)
axis.axhline(1, color="#B0B0B0", linewidth=0.8)
axis.set(
    xlabel=r"samples $\alpha = n/d^2$",
    ylabel="test error over a constant's",
    ylim=(0, None),
)
axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
figure.savefig("one_teacher.png", dpi=150)
