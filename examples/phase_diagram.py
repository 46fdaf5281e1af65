"""When can an attention layer be learned?

A softmax layer looks at pairs of tokens in d dimensions. Its query-key matrix has width
$\\rho d$, and you see $n = \\alpha d^2$ of its outputs. Theory gives the error of the best
learner anywhere in this plane.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from attlas import aim

quick = "--quick" in sys.argv  # a small run, to see what it does
points, d = (60, 40) if quick else (150, 150)

# %%
# The whole plane takes about a second: each point is the root of one equation.

channel = aim.Softmax(tokens=2)
alpha, rho = np.linspace(0.003, 0.3, points), np.linspace(0.02, 2, points)
phases = aim.phase_diagram(channel, alpha, rho)
print(
    f"at rho = 0.5 recovery is perfect above alpha = {aim.recovery_threshold(channel, rho=0.5)}"
)

# %%
# Is it true at a finite dimension? Message passing knows the outputs and nothing else, and
# comes close to the best error.

print(f"alpha   best error   message passing, d = {d}")
for samples in (0.05, 0.1, 0.15, 0.25):
    task = aim.sample(channel, d, samples, rho=0.5, seed=0)
    found = aim.message_passing(
        task.X, task.y, channel, 0.5, S=task.S, tol=1e-4, throw=False
    )
    print(
        f"{samples:5.2f}   {aim.state_evolution(channel, samples, 0.5).value:10.4f}   {found.mse[-1]:15.4f}"
    )

# %%
# Blue is ignorance, yellow is knowledge. Right of the line nothing is left to learn.

figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
error = axis.pcolormesh(
    alpha,
    rho,
    phases["mse"].transpose("rho", "alpha"),
    cmap="viridis_r",
    vmin=0,
    vmax=1,
    shading="gouraud",
    rasterized=True,
)
axis.plot(phases["threshold"], rho, color="#C1121F", linewidth=2.5)
axis.text(0.205, 0.35, "perfect recovery", color="#C1121F", fontsize=11)
axis.set(
    xlabel=r"samples $\alpha = n/d^2$",
    ylabel=r"width $\rho$ of the query-key matrix",
    xlim=(0.003, 0.3),
    ylim=(0.02, 2),
)
figure.colorbar(error, label="error of the best learner")
figure.savefig("phase_diagram.png", dpi=150)
