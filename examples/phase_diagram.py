"""Where a softmax attention layer can be learned: theory as a picture, message passing as a check."""

import argparse

import numpy as np

from attlas import aim, report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small, for a look at what it does")
    parser.add_argument("--figure", default="phases.png", help="where to write the diagram")
    options = parser.parse_args()
    points, d = (20, 40) if options.quick else (100, 150)
    channel, rho = aim.Softmax(tokens=2), 0.5

    diagram = aim.phase_diagram(channel, np.linspace(0.003, 0.3, points), np.linspace(0.02, 2, points))
    report.diagram(diagram).savefig(options.figure, dpi=150)
    threshold = aim.recovery_threshold(channel, rho)
    print(
        f"{options.figure}: error over samples and width; at rho = {rho} recovery is perfect above alpha = {threshold}"
    )

    print(f"alpha   best error   message passing, d = {d}")
    for alpha in (0.05, 0.1, 0.15, 0.25):
        task = aim.sample(channel, d, alpha, rho, seed=0)
        found = aim.message_passing(task.X, task.y, channel, rho, S=task.S, tol=1e-4, throw=False)
        print(f"{alpha:5.2f}   {aim.state_evolution(channel, alpha, rho).value:10.4f}   {found.mse[-1]:15.4f}")


if __name__ == "__main__":
    main()
