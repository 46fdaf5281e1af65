"""Does message passing settle, in how many steps, and is what it calls converged right?

Runs on fresh teachers, by group: away from every threshold, at 0.9 of that of perfect recovery and above it, each for widths
from 0.5 and for 0.1, and hardmax, which has none.

    python studies/settling.py --out settling.json

A line of the table: runs that converged, of how many; median and most steps of these; the mean error of all runs over V
(above the threshold: converged runs with an error above 1e-7 instead); seconds of all runs.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attlas import aim

RECOVERED = 1e-7


class Setting(NamedTuple):
    """A channel at a width and a number of samples; alpha over that of perfect recovery if `over`, else over d^2."""

    channel: aim.Channel
    rho: float
    alpha: float
    over: bool = False


BOTH = (aim.Softmax(2), aim.Linear(1))
GROUPS = {
    "away": [
        Setting(aim.Softmax(2), 0.5, 0.1),
        Setting(aim.Softmax(2), 1.0, 0.1),
        Setting(aim.Softmax(2), 1.5, 0.12),
        Setting(aim.Softmax(3), 0.5, 0.03),
        Setting(aim.Softmax(4), 0.7, 0.02),
        Setting(aim.Linear(1, 0.25), 0.5, 0.4),
        Setting(aim.Linear(1, 0.25), 0.5, 0.1),
        Setting(aim.Linear(2, 0.5), 1.0, 0.1),
        Setting(aim.Linear(1), 1.0, 0.25),
        Setting(aim.Linear(2, 0.1), 2.0, 0.3),
        Setting(aim.Hardmax(2), 0.5, 0.25),
        Setting(aim.Hardmax(2), 1.0, 0.3),
    ],
    "at 0.9": [Setting(channel, rho, 0.9, True) for channel in BOTH for rho in (0.5, 1.0)],
    "above": [Setting(channel, rho, x, True) for channel in BOTH for rho in (0.5, 1.5) for x in (1.1, 1.3)],
    "hardmax(3)": [Setting(aim.Hardmax(3), 0.5, 0.1), Setting(aim.Hardmax(3), 1.0, 0.15)],
    "rho = 0.1, away": [
        Setting(aim.Softmax(2), 0.1, 0.02),
        Setting(aim.Linear(1, 0.25), 0.1, 0.15),
        Setting(aim.Hardmax(2), 0.1, 0.1),
    ],
    "rho = 0.1, at 0.9": [Setting(channel, 0.1, 0.9, True) for channel in BOTH],
    "rho = 0.1, above": [Setting(channel, 0.1, x, True) for channel in BOTH for x in (1.1, 1.3)],
}
SEEDS = {"away": {20: 8, 40: 6, 80: 3}, "at 0.9": {20: 6, 40: 4, 80: 2}, "above": {20: 4, 40: 3, 80: 1}}
SEEDS |= {"hardmax(3)": {20: 4, 30: 2}} | {"rho = 0.1, away": {20: 10, 40: 8, 80: 3}}
SEEDS |= {"rho = 0.1, at 0.9": {20: 8, 40: 6, 80: 2}, "rho = 0.1, above": {20: 4, 40: 3, 80: 1}}
LARGE = {"away": {150: 1, 300: 1}, "at 0.9": {150: 1}}


def main():
    options = arguments()
    runs = []
    for group in options.groups or GROUPS:
        sizes = {12: 1} if options.quick else SEEDS[group] | (LARGE.get(group, {}) if options.large else {})
        for setting in GROUPS[group]:
            for d, seeds in sizes.items():
                runs += [run(group, setting, d, options.first + seed) for seed in range(seeds)]
            print(f"{group}: {setting.channel}, rho = {setting.rho}", file=sys.stderr, flush=True)
        if options.out:
            Path(options.out).write_text(json.dumps(runs, indent=1) + "\n")
    print(table(runs), end="")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", nargs="*", choices=list(GROUPS), help="default: all")
    parser.add_argument("--first", type=int, default=5000, help="first seed")
    parser.add_argument("--large", action="store_true", help="also d = 150 and 300")
    parser.add_argument("--out", help="JSON file for every run")
    parser.add_argument("--quick", action="store_true", help="one small run of each setting, to see that it works")
    return parser.parse_args()


def run(group, setting, d, seed):
    """Run message passing on a fresh task, with its own tolerance and number of steps."""
    channel, rho = setting.channel, setting.rho
    alpha = setting.alpha * (aim.recovery_threshold(channel, rho) if setting.over else 1)
    task = aim.sample(channel, d, alpha, rho, seed)
    start = time.perf_counter()
    found = aim.message_passing(task.X, task.y, channel, rho, S=task.S, throw=False)
    seconds = time.perf_counter() - start
    return {
        "group": group,
        "channel": repr(channel),
        "rho": rho,
        "alpha": alpha,
        "d": d,
        "seed": seed,
        "converged": found.converged,
        "steps": found.steps,
        "error": float(found.mse[-1]),
        "V": float(aim.state_evolution(channel, len(task.X) / d**2, rho, steps=0).value),
        "seconds": seconds,
    }


def table(runs):
    """Return a Markdown table: a line for each group and size, and one for each group."""
    lines = ["| group | d | converged | steps, median | most | error over V | seconds |", "|---" * 7 + "|"]
    for group in dict.fromkeys(own["group"] for own in runs):
        mine = [own for own in runs if own["group"] == group]
        for d in (*sorted({own["d"] for own in mine}), "all"):
            lines.append(f"| {group} | {d} | {' | '.join(cells([own for own in mine if d in ('all', own['d'])]))} |")
    return "\n".join(lines) + "\n"


def cells(runs):
    settled = [own for own in runs if own["converged"]]
    steps = [own["steps"] for own in settled] or [0]
    if any(own["V"] > 0 for own in runs):
        ratios = [own["error"] / own["V"] for own in runs if own["V"] > 0]
        error = f"{np.mean(ratios):.3f}({np.std(ratios) / np.sqrt(len(ratios)):.3f})"
    else:
        wrong = sum(own["error"] > RECOVERED for own in settled)
        error = f"{wrong} wrong"
    seconds = sum(own["seconds"] for own in runs)
    return [f"{len(settled)} of {len(runs)}", f"{np.median(steps):.0f}", f"{max(steps)}", error, f"{seconds:.1f}"]


if __name__ == "__main__":
    main()
