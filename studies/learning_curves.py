"""Learning curves of random-feature attention, with and without bias, and of a network with as many trained numbers.

Which functions of a query and its keys are learned, from how many samples? Every entry is the test error over the variance
of the target (a constant predictor scores 1), at the penalty that leave-one-out chooses.

    python studies/learning_curves.py --figure curves.png --out curves.json

RFA has no bias, BRFA the bias 1 in its query-key matrices, RFMLP as many neurons on the concatenated tokens as the heads
have trained numbers. The targets are those of Fu, Guo, Bai and Mei 2023 (arXiv 2307.11353, section 3.2), without noise,
on tokens of the unit sphere. A seed redraws everything: sequences, heads, neurons, directions, the rotation.
"""

import argparse
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attlas import tokens
from attlas.claims.figure import COLOURS, MARKERS, panels
from attlas.errors import InputError
from attlas.features import RandomAttentionRegressor, learning_curve, mlp_neurons, targets, theory
from attlas.features.nested_curve import nested_curve
from attlas.features.ridge import GRID
from attlas.layers import random_feature_mlp
from attlas.numerics import stream

MODELS = ("RFA", "BRFA", "RFMLP")
FAMILIES = {
    "query": ("query p1", "query p2"),
    "keys": ("keys p1", "keys p2", "keys p3"),
    "correlation": ("correlation p1", "correlation p2", "correlation p3", "correlation p4"),
    "weighted correlation": ("weighted p1 q1", "weighted p1 q2", "weighted p2 q2"),
    "rotated correlation": ("rotated p1", "rotated p2"),
}
TARGETS = tuple(name for family in FAMILIES.values() for name in family)
NEURONS = 2000  # used at a time: n x 2000 float32 numbers beside the Gram matrix


class Setting(NamedTuple):
    """What is measured: tokens of dimension d, this many keys and heads, training sizes, test sequences."""

    d: int
    keys: int
    heads: int
    sizes: tuple[int, ...]
    n_test: int
    places: int = 16  # at which curves are predicted
    predicted: tuple[str, ...] = TARGETS  # for which targets


DEFAULT = Setting(16, 16, 1000, (250, 500, 1000, 2000), 2000)
FULL = DEFAULT._replace(sizes=(*DEFAULT.sizes, 4000, 8000))
QUICK = Setting(6, 6, 150, (60, 120, 240, 480), 500, places=4, predicted=("query p2", "keys p2"))


def main():
    options = arguments()
    setting = FULL if options.full else QUICK if options.quick else DEFAULT
    errors = np.array([errors_of(setting, seed) for seed in range(options.seeds)])  # (seeds, models, sizes, targets)
    print(table(errors, setting.sizes))
    print(markdown(errors, setting.sizes))
    if options.out:
        numbers = {"setting": setting._asdict(), "models": MODELS, "targets": TARGETS, "errors": errors.tolist()}
        options.out.write_text(json.dumps(numbers, indent=1) + "\n")
    if options.figure:
        draw(errors, setting).savefig(options.figure, dpi=80)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="up to 8000 samples instead of 2000")
    size.add_argument("--quick", action="store_true", help="a few seconds, in six dimensions")
    parser.add_argument("--seeds", type=int, default=4, help="how many draws of everything (4)")
    parser.add_argument("--out", type=Path, help="where to write the numbers, as JSON")
    parser.add_argument("--figure", type=Path, help="where to draw the curves, such as curves.png")
    options = parser.parse_args()
    if options.seeds < 1:
        parser.error("--seeds must be at least 1")
    for path in (options.out, options.figure):
        if path and not path.parent.is_dir():
            parser.error(f"the folder {path.parent} does not exist; make it first")
    return options


def errors_of(setting, seed):
    """Return test error over variance, (models, sizes, targets). A model's Gram matrix serves all targets and sizes."""
    X = tokens.sphere(setting.sizes[-1], setting.keys + 1, setting.d, stream(seed, "train"))
    X_test = tokens.sphere(setting.n_test, setting.keys + 1, setting.d, stream(seed, "test"))
    functions = [target(name, setting.d, seed) for name in TARGETS]
    Y, expected = (np.stack([f(x) for f in functions], axis=1) for x in (X, X_test))
    Y, expected = Y / expected.std(0), expected / expected.std(0)
    heads = int(stream(seed, "heads").integers(2**31))
    neurons = mlp_neurons(setting.heads * (setting.d + 1), setting.keys + 1, setting.d, stream(seed, "neurons"))
    found = []
    for name in MODELS:
        start = time.perf_counter()
        if name == "RFMLP":
            K, cross = network_grams(X, X_test, neurons)
            penalties = np.array(GRID) * np.trace(K) / len(K)
            curve = nested_curve(K, Y, cross, expected, np.array(setting.sizes), penalties)
        else:
            model = RandomAttentionRegressor(
                setting.heads, bias=float(name == "BRFA"), fit_intercept=False, random_state=heads
            )
            curve = learning_curve(model, X, Y, X_test, expected, sizes=setting.sizes)
        found.append(curve.chosen())
        print(f"seed {seed}, {name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    return np.array(found)


def target(name, d, seed):
    """Return the target called "keys p2", "weighted p1 q2" and so on; all of a seed share a direction and a rotation."""
    rng = stream(seed, "target")
    beta = rng.standard_normal(d)
    beta /= np.linalg.norm(beta)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    family, *powers = name.split()
    p, *q = (int(power[1:]) for power in powers)
    match family:
        case "query":
            return targets.Query(beta, p)
        case "keys":
            return targets.KeyAverage(beta, p)
        case "weighted":
            return targets.Correlation(p, beta=beta, key_power=q[0])
        case "rotated":
            return targets.Correlation(p, S=rotation)
    return targets.Correlation(p)


def network_grams(X, X_test, neurons):
    """Return the Gram matrices (n, n) and (n_test, n) of the network's features: float64 sums of float32 products."""
    X, X_test, neurons = (part.astype(np.float32) for part in (X, X_test, neurons))
    K, cross = np.zeros((len(X), len(X))), np.zeros((len(X_test), len(X)))
    for start in range(0, len(neurons), NEURONS):
        block = neurons[start : start + NEURONS]
        features = random_feature_mlp(X, block)
        K += features @ features.T
        cross += random_feature_mlp(X_test, block) @ features.T
    K /= len(neurons)
    cross /= len(neurons)
    return K, cross


def table(errors, sizes):
    """Return plain text: a line for each target and model, mean and standard deviation over seeds for each size."""
    lines = [f"{'target':<16}{'model':<7}" + "".join(f"{f'n = {n}':>17}" for n in sizes)]
    for t, name in enumerate(TARGETS):
        for m, model in enumerate(MODELS):
            cells = [f"{entry(errors[:, m, k, t]):>17}" for k in range(len(sizes))]
            lines.append(f"{name:<16}{model:<7}" + "".join(cells))
    return "\n".join(lines) + "\n"


def markdown(errors, sizes):
    """Return the same as a Markdown table: a line for each target, a column for each model, the sizes one after another."""
    lines = [f"| target, n = {' / '.join(map(str, sizes))} | {' | '.join(MODELS)} |", "|---" * (len(MODELS) + 1) + "|"]
    for t, name in enumerate(TARGETS):
        cells = [" / ".join(entry(errors[:, m, k, t]) for k in range(len(sizes))) for m in range(len(MODELS))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def entry(values):
    mean = f"{values.mean():.3f}"
    return mean if len(values) == 1 else f"{mean} ± {values.std(ddof=1):.3f}"


def predicted(setting, sizes):
    """Return what the theory says at its best penalty, (models, sizes, targets); NaN where it has nothing to say."""
    found = np.full((len(MODELS), len(sizes), len(TARGETS)), np.nan)
    for m, (bias, learner) in enumerate(((0.0, "attention"), (1.0, "attention"), (0.0, "network"))):
        own = theory(setting.d, setting.keys, bias, learner=learner)
        for t, name in ((TARGETS.index(name), name) for name in setting.predicted):
            with suppress(InputError):  # a rotated correlation of degree two has no expansion with a bias
                curve = own.curve(target(name, setting.d, 0), sizes, heads=setting.heads)
                found[m, :, t] = np.where(curve.converged, curve.error, np.nan)
    return found


def draw(errors, setting):
    """Draw a panel for each family: a colour for each model, a marker for each power; theory as lines."""
    figure, axes = panels(len(FAMILIES), width=3.3, height=3.9)
    sizes, grid = setting.sizes, np.geomspace(setting.sizes[0], setting.sizes[-1], setting.places)
    mean, lines = errors.mean(0), predicted(setting, grid)
    spread = errors.std(0, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.zeros_like(mean)
    shown = []
    for axis, (family, names) in zip(axes, FAMILIES.items(), strict=True):
        for marker, name in zip(MARKERS, names, strict=False):
            t = TARGETS.index(name)
            shown = [
                axis.errorbar(sizes, mean[m, :, t], spread[m, :, t], color=colour, marker=marker, ms=4, ls="")
                for m, colour in enumerate(COLOURS[: len(MODELS)])
            ]
            for m, colour in enumerate(COLOURS[: len(MODELS)]):
                axis.plot(grid, lines[m, :, t], color=colour, lw=1.1)
            axis.plot([], [], color="#555555", marker=marker, ms=4, ls="", label=name.split(" ", 1)[1])
        axis.axhline(1, color="#555555", lw=0.8, ls=":")
        least = mean[:, :, [TARGETS.index(name) for name in names]].min()
        axis.set(xscale="log", yscale="log", ylim=(least / 1.8, 1.4), xlabel="samples n", title=family)
        axis.set_xticks(sizes, [str(n) for n in sizes], fontsize=8)
        axis.minorticks_off()
        axis.legend(loc="lower left", frameon=False, fontsize=8)
    axes[0].set_ylabel("test error / variance")
    figure.legend(shown, MODELS, loc="outside lower center", ncols=len(MODELS), frameon=False)
    return figure


if __name__ == "__main__":
    main()
