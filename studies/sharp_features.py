"""The theory of random features beside simulations of its own seeds: how far they differ, and where.

`python studies/sharp_features.py` takes about ten minutes on one core and prints the tables of docs/features.md;
`--theory` prints those that need no simulation. Penalties are absolute, lam = 0.36 times the numbers listed; no intercept.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from attlas import features, tokens
from attlas.features.nested_curve import nested_curve
from attlas.numerics import stream

NAMES = ["query1", "query2", "keys1", "keys2", "keys3", "corr1", "corr2", "corr3", "scorr1", "wcorr11"]
NOISES = 6  # columns of labels that are noise alone
PENALTIES = 0.36 * np.array([1e-4, 1e-2, 0.1, 1.0])

FULL = {
    "RFA d=N=16": {"d": 16, "seeds": 6, "heads": ["infinite", 1000, 200, 50]},
    "RFA d=N=8": {"d": 8, "seeds": 8, "heads": ["infinite", 1000, 200, 50]},
    "BRFA b=1 d=N=8": {"d": 8, "seeds": 6, "heads": ["infinite", 1000, 50], "bias": 1.0},
    "RFMLP d=N=8": {"d": 8, "seeds": 6, "heads": [300 / 9, 2000 / 9], "learner": "network"},
}
QUICK = {
    "RFA d=N=6": {"d": 6, "seeds": 3, "heads": ["infinite", 50]},
    "BRFA b=1 d=N=6": {"d": 6, "seeds": 3, "heads": ["infinite"], "bias": 1.0},
    "RFMLP d=N=6": {"d": 6, "seeds": 3, "heads": [100], "learner": "network"},
}


def simulate(d, heads, seed, sizes, penalties, bias=0.0, learner="attention", n_test=1000):
    """Return mean squared test errors (penalties, sizes, targets and noise) of one draw of everything."""
    X = tokens.sphere(sizes[-1], d + 1, d, stream(seed, "study: train"))
    X_test = tokens.sphere(n_test, d + 1, d, stream(seed, "study: test"))
    K, cross = grams(X, X_test, heads, bias, learner, seed)
    functions = [features.targets.named(name, d, 5000 + seed) for name in NAMES]
    Y, expected = (np.stack([f(x) for f in functions], axis=1) for x in (X, X_test))
    noise = stream(seed, "study: noise").standard_normal((len(X), NOISES))
    Y, expected = np.hstack([Y, noise]), np.hstack([expected, np.zeros((n_test, NOISES))])
    found = nested_curve(K, Y, cross, expected, np.array(sizes), np.asarray(penalties)).test
    return np.concatenate([found[..., : len(NAMES)], found[..., len(NAMES) :].mean(-1, keepdims=True)], axis=-1)


def grams(X, X_test, heads, bias, learner, seed):
    d = X.shape[2]
    if heads == "infinite":
        return features.attention_kernel(X, bias=bias), features.attention_kernel(X_test, X, bias=bias)
    state = int(stream(seed, "study: heads").integers(2**31))
    if learner == "network":
        made = features.RandomMLPFeatures(round(heads * (d + 1)), random_state=state).fit(X)
    else:
        made = features.RandomAttentionFeatures(heads, bias=bias, random_state=state).fit(X)
    Phi, Phi_test = made.transform(X), made.transform(X_test)
    return Phi @ Phi.T, Phi_test @ Phi.T


def predict(d, heads, sizes, penalties, bias=0.0, learner="attention"):
    """Return the same of the theory."""
    theory = features.theory(d, d, bias, learner=learner)
    found = theory.curve(NAMES, sizes, heads=heads, ridge=penalties, noise=1.0)
    errors = (found.mse * (1 - found.from_noise / found.error)).values  # without the noise
    return np.moveaxis(np.concatenate([errors, found.from_noise.values[:1]]), 0, -1)


def deviations(settings, sizes):
    """Yield (learner, heads, relative deviations, relative standard errors), (penalties, sizes, targets)."""
    for name, given in settings.items():
        options = {key: value for key, value in given.items() if key in ("bias", "learner")}
        for heads in given["heads"]:
            draws = [simulate(given["d"], heads, seed, sizes, PENALTIES, **options) for seed in range(given["seeds"])]
            mean, spread = np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1) / np.sqrt(given["seeds"])
            theory = predict(given["d"], heads, sizes, PENALTIES, **options)
            yield name, heads, theory / mean - 1, spread / mean


def double_descent(d, n, counts, seeds, penalty=1e-6):
    """Return rows of M, variance from noise and error of keys2: theory, simulation and its standard error."""
    rows = []
    for heads in counts:
        draws = np.array([simulate(d, heads, seed, [n], [penalty])[0, 0] for seed in range(seeds)])
        theory = predict(d, heads, [n], [penalty])[0, 0]
        variance = features.theory(d, d).placed("keys2").variance
        row = [heads]
        for column, scale in ((-1, 1.0), (NAMES.index("keys2"), variance)):
            spread = draws[:, column].std(ddof=1) / np.sqrt(seeds)
            row += [theory[column] / scale, draws[:, column].mean() / scale, spread / scale]
        rows.append(row)
    return rows


def theory_tables():
    """Print the errors at the best penalty beside the measured ones, and sample costs with their exponents."""
    sizes = [250, 500, 1000, 2000, 4000, 8000]
    names = [*NAMES[:8], "wcorr11", "wcorr12", "wcorr22", "scorr1"]
    print("| target, n = " + " / ".join(map(str, sizes)) + " | RFA | BRFA, bias 1 | RFMLP |\n|---|---|---|---|")
    columns = [
        features.theory(16, 16, bias, learner=learner).curve(names, sizes, heads=1000).error.values
        for bias, learner in ((0.0, "attention"), (1.0, "attention"), (0.0, "network"))
    ]
    for row, name in enumerate(names):
        cells = [" / ".join(f"{value:.3f}" for value in column[row]) for column in columns]
        print(f"| {name} | " + " | ".join(cells) + " |")
    d = [4, 6, 8, 12, 16, 32, 64, 128]
    print("\n| target | " + " | ".join(f"d = {each}" for each in d) + " | slopes 8-16, 16-32, 32-64, 64-128 |")
    print("|---" * (len(d) + 2) + "|")
    for bias, some in (
        (0.0, ["query2", "keys2", "corr1", "corr2", "corr3"]),
        (1.0, ["keys2", "corr1", "corr2", "scorr1"]),
    ):
        for name in some:
            own = d if not bias else d[1:]
            costs = dict(zip(own, features.theory(8, 16, bias).exponent(name, d=own).cost.values, strict=True))
            slopes = [np.log2(costs[2 * each] / costs[each]) for each in (8, 16, 32, 64)]
            cells = [f"{costs[each]:.0f}" if each in costs else "-" for each in d]
            label = f"{name}, bias {bias:g}" if bias else name
            print(f"| {label} | " + " | ".join(cells) + " | " + ", ".join(f"{slope:.2f}" for slope in slopes) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, two draws")
    parser.add_argument("--theory", action="store_true", help="the tables that need no simulation")
    parser.add_argument("--out", type=Path, help="write the deviations there, as JSON")
    options = parser.parse_args()
    if options.theory:
        return theory_tables()
    settings, sizes = (QUICK, [50, 150]) if options.quick else (FULL, [100, 250, 500, 1000, 2000])
    print(
        "| learner | heads | median deviation | 90 % | median standard error | worst targets |\n|---|---|---|---|---|---|"
    )
    record = []
    labels = [*NAMES, "noise"]
    for name, heads, deviation, error in deviations(settings, sizes):
        size = np.abs(deviation)
        by_target = np.median(deviation, axis=(0, 1))
        worst = ", ".join(f"{labels[k]} {by_target[k]:+.0%}" for k in np.argsort(-np.abs(by_target))[:3])
        numbers = f"{np.median(size):.1%} | {np.quantile(size, 0.9):.1%} | {np.median(error):.1%}"
        print(f"| {name} | {heads if isinstance(heads, str) else round(heads, 1)} | {numbers} | {worst} |", flush=True)
        record.append({"learner": name, "heads": heads, "deviation": deviation.tolist(), "error": error.tolist()})
    counts, n, seeds = ([20, 57, 200], 400, 3) if options.quick else ([20, 30, 38, 44, 50, 60, 120, 400], 400, 8)
    print(f"\n| M, n = {n} | noise, theory | simulated | keys2, theory | simulated |\n|---|---|---|---|---|")
    for heads, *row in double_descent(6 if options.quick else 8, n, counts, seeds):
        print(f"| {heads} | {row[0]:.3g} | {row[1]:.3g} ± {row[2]:.2g} | {row[3]:.3g} | {row[4]:.3g} ± {row[5]:.2g} |")
    if options.out:
        options.out.write_text(json.dumps({"targets": labels, "sizes": sizes, "runs": record}))
    return None


if __name__ == "__main__":
    main()
