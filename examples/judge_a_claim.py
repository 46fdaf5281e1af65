"""A verdict that can fail

A claim of the atlas is a list of tests. Each estimates a number with its interval and names
the region in which the statement is true. A claim is worth something only if a wrong theory
refutes it, so every claim names such theories.
"""

import matplotlib.pyplot as plt

from attlas import lab

(found,) = lab.verdicts(["aim.state-evolution"], "full", shipped=True)
print(f"{found.claim.id}: {found.status}, {found.verdict.strength_text}")

# %%
# The same measurements, judged as if the theory were wrong by up to 10 %. This claim grants a
# theory 5 %, and must refute one that is wrong by 10 %.

theories = {1.0: found.verdict}
for mutation in found.claim.mutations:
    if mutation.change and mutation.name.startswith("V of the theory"):
        for size in mutation.sizes:
            theories[size] = found.claim.judge(
                mutation.applied(found.measurements(), size, int)
            )
for size, verdict in sorted(theories.items()):
    print(f"theory times {size:4.2f}: {verdict.outcome}")

# %%
# Error over theory with its 99 % interval, one colour for each channel. Supported needs
# every interval inside the region; one that lies outside refutes.

COLOURS = {"softmax": "#0072B2", "linear": "#D55E00", "hardmax": "#009E73"}
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.axhspan(0.95, 1.05, color="#009E73", alpha=0.12, linewidth=0)
for place, (_, verdict) in enumerate(sorted(theories.items())):
    tests = [
        test
        for test in verdict.tests
        if "over" not in test.name and test.name.endswith("d = infinity")
    ]
    for i, test in enumerate(tests):
        value, (low, high) = test.estimate.value, test.estimate.interval()
        colour = COLOURS[test.name.split()[0]]
        axis.errorbar(
            place + (i - 2) * 0.14,
            value,
            [[value - low], [high - value]],
            fmt="o",
            color=colour,
            markersize=5,
            capsize=2,
        )
    axis.text(place, 1.165, f"{verdict.outcome}", ha="center", color="#555555", fontsize=9)
for channel, colour in COLOURS.items():
    axis.plot([], [], "o", color=colour, label=channel)
axis.set_xticks(range(len(theories)), [f"{size:g}" for size in sorted(theories)])
axis.set(
    xlabel="theory multiplied by", ylabel="measured error over theory", ylim=(0.82, 1.18)
)
axis.legend(frameon=False, loc="lower left")
figure.savefig("judge_a_claim.png", dpi=150)
