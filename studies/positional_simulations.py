"""Training, message passing and spectra at finite d beside the theory of position and meaning: mean (s.e.) | theory.

    python studies/positional_simulations.py

About four minutes on one core; `--quick` takes small sizes and few seeds. It prints the tables of docs/positional.md.
"""

import argparse

import numpy as np

from attlas import positional
from attlas.numerics import stream

F = positional.Model(mixture=0.3, encoding=3.0)
PUBLISHED = positional.Model(mixture=0.3, encoding=1.0, token_scale=0.5, decay=0.01)
BRANCHES = {"positional": "m", "semantic": "theta"}
SEEDS = 500  # the first one; every table takes those that follow

FULL = {
    "minima": {"alphas": [2, 3, 4], "sizes": {250: 16, 500: 12, 1000: 8}},
    "published": {"d": 2000, "seeds": 6},
    "ends": {"d": 200, "seeds": 16, "alphas": [3, 8, 16]},
    "steps": {"d": 200, "seeds": 12, "steps": [0.05, 0.12, 0.14, 0.16], "most": 3000, "stay": (250, 6, 1500)},
    "messages": {"d": 3000, "seeds": 12},
    "spectra": {"sizes": {250: 8, 1000: 4}},
}
QUICK = {
    "minima": {"alphas": [3], "sizes": {100: 4, 200: 4}},
    "published": {"d": 200, "seeds": 3},
    "ends": {"d": 100, "seeds": 4, "alphas": [3]},
    "steps": {"d": 80, "seeds": 3, "steps": [0.05, 0.16], "most": 300, "stay": (80, 3, 300)},
    "messages": {"d": 400, "seeds": 3},
    "spectra": {"sizes": {100: 4, 400: 2}},
}


def told(values, theory=None, digits=5):
    """Return a cell: the mean, its standard error in units of the last digit, and the theory."""
    values = np.asarray(values, float)
    error = values.std(ddof=1) / np.sqrt(len(values))
    cells = [f"{values.mean():.{digits}f}({round(error * 10**digits)})"]
    if theory is not None:
        cells.append(f"{theory:.{digits}f}")
    return " \\| ".join(cell.removeprefix("0") if cell[0] == "0" else cell.replace("-0.", "-.") for cell in cells)


def head(*names):
    print("\n| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|", flush=True)


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def minima(alphas, sizes):
    """Both minima, each from a start beside it, on the same data; and the difference of their losses."""
    losses = {}
    head("α", "d, seeds", "minimum", "loss", "q", "m or θ")
    for alpha in alphas:
        theory = {branch: positional.state_evolution(F, alpha, branch) for branch in BRANCHES}
        for d, seeds in sizes.items():
            fits = {branch: [] for branch in BRANCHES}
            for seed in range(SEEDS, SEEDS + seeds):
                task = positional.sample(F, d, alpha, seed)
                for branch, own in fits.items():
                    own.append(positional.minimise(task, branch))
            for branch, own in fits.items():
                cells = [
                    told([getattr(fit, name) for fit in own], getattr(theory[branch], name))
                    for name in ("loss", "q", BRANCHES[branch])
                ]
                row(alpha, f"{d}, {seeds}", branch, *cells)
            pairs = zip(fits["positional"], fits["semantic"], strict=True)
            gap = theory["positional"].loss - theory["semantic"].loss
            losses[alpha, d] = [place.loss - meaning.loss for place, meaning in pairs], gap
    head("α", "d", "loss by position minus by meaning", "meaning lower")
    for (alpha, d), (gaps, theory) in losses.items():
        row(alpha, d, told(gaps, theory), f"{sum(gap > 0 for gap in gaps)} of {len(gaps)}")


def published(d, seeds):
    """The published setting with encoded values, also where the theory is approximate."""
    head("α", "minimum", "loss", "q", "m or θ", "jump share")
    for alpha, branches in ((2, BRANCHES), (1.25, BRANCHES), (0.8, ("semantic",))):
        for branch in branches:
            theory = positional.state_evolution(PUBLISHED, alpha, branch)
            fits = [
                positional.minimise(positional.sample(PUBLISHED, d, alpha, seed, "encoded"), branch, tol=1e-6)
                for seed in range(SEEDS, SEEDS + seeds)
            ]
            cells = [
                told([getattr(fit, name) for fit in fits], getattr(theory, name), digits)
                for name, digits in (("loss", 6), ("q", 4), (BRANCHES[branch], 4))
            ]
            row(alpha, branch, *cells, f"{theory.jump_share:.2g}")


def counted(fits):
    """Return how many fits ended where."""
    ends = [fit.mechanism for fit in fits]
    return [ends.count(name) for name in ("positional", "semantic", "between")]


def ends(d, seeds, alphas):
    """Where L-BFGS ends from a small random start, with and without an encoding."""
    head("L-BFGS, random start", "positional", "semantic", "between")
    for encoding, own in ((3.0, alphas), (0.0, [3])):
        model = positional.Model(0.3, encoding)
        for alpha in own:
            tasks = (positional.sample(model, d, alpha, seed) for seed in range(SEEDS, SEEDS + seeds))
            row(
                f"c = {encoding:g}, α = {alpha}, d = {d}",
                *counted([positional.minimise(t, throw=False) for t in tasks]),
            )


def steps(d, seeds, steps, most, stay):
    """Where descent ends by its step, from a random start and from beside the positional minimum; alpha = 3."""
    head("descent, α = 3", "positional", "semantic", "between")
    for step in steps:
        tasks = (positional.sample(F, d, 3, seed) for seed in range(SEEDS, SEEDS + seeds))
        fits = [positional.minimise(t, "random", "descent", step=step, max_steps=most, throw=False) for t in tasks]
        row(f"random start, step {step:g}, d = {d}", *counted(fits))
    d, seeds, most = stay
    for step in (0.05, 0.15):
        left, fits = 0, []
        for seed in range(SEEDS, SEEDS + seeds):
            task = positional.sample(F, d, 3, seed)
            place = positional.minimise(task, "positional")
            begin = place.value + 1e-3 * stream(seed, "study").standard_normal(d)
            fits.append(positional.minimise(task, begin, "descent", step=step, max_steps=most, throw=False))
            left += abs(fits[-1].loss - place.loss) > 1e-4
        row(f"from the positional minimum, step {step:g}, d = {d}: {left} of {seeds} leave", *counted(fits))


def messages(d, seeds):
    """Errors of message passing, from no knowledge and from a start of overlap q with the teacher."""
    head("L, α", "d", "start", "error", "exact")
    for tokens, alpha, q in (
        (2, 0.1, None), (2, 0.25, None), (2, 0.35, None), (2, 0.45, None), (2, 0.53, None), (2, 0.53, 0.995), (2, 0.6, None),
        (3, 0.2, None), (3, 0.4, None), (1, 1.06, None), (1, 1.06, 0.995), (1, 1.06, 0.9),
    ):  # fmt: skip
        own = d if tokens == 2 else round(d * 2 / 3)
        errors = []
        for seed in range(SEEDS, SEEDS + seeds):
            task = positional.sample_teacher(tokens, own, alpha, seed)
            start, truth = None, task.W[:, 0]
            if q is not None:
                start = (q * truth + np.sqrt(q * (1 - q)) * stream(seed, "study").standard_normal(own), 1 - q)
            given = {"z": task.z[:, :, 0], "Q": truth, "start": start, "throw": False, "max_steps": 2000}
            errors.append(positional.message_passing(task.X, **given).mse[-1])
        point = positional.bayes(tokens, alpha)
        theory = point.value if q == 0.995 else point.algorithm if q is None else None
        exact = sum(error < 1e-8 for error in errors)
        row(
            f"{tokens}, {alpha:g}",
            own,
            "none" if q is None else f"q = {q:g}",
            told(errors, theory, 3),
            f"{exact} of {seeds}",
        )


def spectra(sizes):
    """Squared overlaps of the spectral method over alpha/alpha_w, for two tokens."""
    head("rank", "α/α_w", *(f"d = {d}" for d in sizes))
    for rank, ratio in ((1, 0.6), (1, 2.5), (2, 0.6), (2, 1.5), (2, 2.5), (4, 0.6), (4, 2.5)):
        cells = []
        for d, seeds in sizes.items():
            alpha = ratio * positional.weak_recovery(2, rank)
            tasks = (positional.sample_teacher(2, d, alpha, seed, rank) for seed in range(SEEDS, SEEDS + seeds))
            cells.append(told([positional.spectral(t.X, t.attention, rank).overlap(t.W) for t in tasks], None, 3))
        row(rank, ratio, *cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, few seeds")
    parser.add_argument("--only", nargs="+", choices=FULL, default=list(FULL), help="which tables")
    options = parser.parse_args()
    settings = QUICK if options.quick else FULL
    for name in options.only:
        globals()[name](**settings[name])


if __name__ == "__main__":
    main()
