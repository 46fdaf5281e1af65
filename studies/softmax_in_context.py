"""How far the linear theory describes a softmax layer: both trained on the same contexts, at small d.

Prints the numbers of docs/context.md and draws its picture. Takes about two minutes.

    python studies/softmax_in_context.py --plot docs/images/softmax-in-context.png
"""

import argparse
from pathlib import Path

import numpy as np

from attlas import context
from attlas.claims.context.softmax import NAMES, Point, measure
from attlas.claims.figure import COLOURS, MARKERS, THEORY, panels

NOISE = 0.1
ALPHAS = (1.0, 2.0, 4.0, 8.0)
KAPPAS = (0.5, 1.0, 2.0, 4.0, 8.0)
Table = dict[float, list[dict[str, float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--d", type=int, default=8)
    parser.add_argument("--sequences", type=int, default=6000)
    parser.add_argument("--seeds", type=int, nargs=2, default=(5, 16), help="for lengths of contexts, for tasks")
    parser.add_argument("--quick", action="store_true", help="two lengths and two numbers of tasks")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    d, n = options.d, options.sequences
    alphas, kappas = (ALPHAS[:2], KAPPAS[1::3]) if options.quick else (ALPHAS, KAPPAS)
    lengths = {a: runs(Point(kappa=None, alpha=a, n=n, noise=NOISE, d=d), options.seeds[0]) for a in alphas}
    tasks = {k: runs(Point(kappa=k, alpha=2.0, n=n, noise=NOISE, d=d), options.seeds[1]) for k in kappas}
    for name, table in (("alpha", lengths), ("kappa", tasks)):
        print(f"| {name} | layer | new tasks | over the linear layer's | training tasks | over the linear layer's |")
        print("|---|---|---|---|---|---|")
        for x, rows in table.items():
            for key in NAMES:
                print(f"| {x:g} | {line(rows, key)} |")
        print()
    if options.plot is not None:
        draw(lengths, tasks, d, options.plot)


def runs(point: Point, seeds: int) -> list[dict[str, float]]:
    return [measure(point, 10_000 + seed) for seed in range(seeds)]


def line(rows: list[dict[str, float]], key: str) -> str:
    new, old = (np.array([r[f"{key}_{end}"] for r in rows]) for end in ("new", "old"))
    ratios = [new / [r["linear_new"] for r in rows], old / [r["linear_old"] for r in rows]]
    return " | ".join([NAMES[key], told(new), told(ratios[0]), told(old), told(ratios[1])])


def told(values: np.ndarray) -> str:
    return f"{values.mean():.3f}({values.std(ddof=1) / np.sqrt(len(values)):.3f})"


def draw(lengths: Table, tasks: Table, d: int, path: Path) -> None:
    figure, axes = panels(3, width=4.3, height=4.0)
    fine = np.geomspace(0.8, 10, 60)
    axes[0].plot(fine, [context.theory(float(a), np.inf, np.inf, 0.0, NOISE).icl for a in fine], color=COLOURS[0])
    axes[0].plot(fine, [context.ridge_in_context(float(a), NOISE).value for a in fine], "--", **THEORY, label="Bayes")
    few = np.geomspace(0.4, 10, 60)
    theory = [context.theory(2.0, float(k), np.inf, 0.0, NOISE) for k in few]
    axes[1].plot(few, [t.icl for t in theory], color=COLOURS[0], label="theory of the linear layer")
    axes[2].plot(few, [t.idg for t in theory], color=COLOURS[0])
    for axis, table, end in ((axes[0], lengths, "new"), (axes[1], tasks, "new"), (axes[2], tasks, "old")):
        for i, (key, name) in enumerate(NAMES.items()):
            values = [np.array([r[f"{key}_{end}"] for r in rows]) for rows in table.values()]
            axis.errorbar(
                list(table), [v.mean() for v in values], yerr=[v.std(ddof=1) / np.sqrt(len(v)) for v in values],
                fmt=MARKERS[i], color=COLOURS[i], capsize=2, label=f"{name}, $d={d}$",
            )  # fmt: skip
        axis.set(xscale="log", ylim=(0, None))
        axis.set_xticks(list(table), [f"{x:g}" for x in table])
        axis.set_xticks([], minor=True)
    axes[0].set(xlabel=r"examples over $d$, $\alpha$", ylabel="error", title="new tasks, endless tasks in training")
    axes[1].set(xlabel=r"training tasks over $d$, $\kappa$", title=r"new tasks, $\alpha=2$")
    axes[2].set(xlabel=r"training tasks over $d$, $\kappa$", title=r"training tasks, $\alpha=2$")
    handles = {name: handle for axis in axes for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), frameon=False, loc="outside lower center", ncol=5, fontsize=9)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
