"""Nothing happens, and then it learns

Train linear attention from small weights to learn in context. The error stays where it is
for a long time, then falls at once. Both the wait and the fall are known in closed form:
each smaller start only waits longer.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from attlas import context

quick = "--quick" in sys.argv  # a small run, to see what it does
d, alpha, noise = (20, 2, 0.1) if quick else (60, 2, 0.1)
times = np.linspace(0, 16 * np.sqrt(d), 301)

# %%
# Gradient flow is integrated from four scales of the first weights, and compared with the
# logistic law.

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for scale, colour in zip(
    (1e-1, 1e-2, 1e-3, 1e-4), ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True
):
    flow = context.gradient_flow(times, d, alpha, noise, scale)
    law = context.logistic_error(times, d, alpha, noise, flow.start)
    half = context.half_time(d, alpha, noise, flow.start)
    print(
        f"first weights {scale:g}: half of the fall after {flow.half_time:6.2f}, by the formula {half:6.2f}"
    )
    axis.plot(times, law, color=colour, alpha=0.35, linewidth=5)
    axis.plot(
        times, flow.value, color=colour, linewidth=1.2, label=f"first weights {scale:g}"
    )
axis.set(xlabel="time of training", ylabel="error on new tasks", ylim=(0, None))
axis.legend(frameon=False, loc="lower left")
figure.savefig("plateau_and_drop.png", dpi=150)

# %%
# Thin lines are the flow, broad lines the formula. Gradient flow needs no step size, so
# nothing here was tuned.
