"""Handwritten digits as sets of tokens: attention with frozen random heads against scikit-learn's regressors.

The 1797 images of `sklearn.datasets.load_digits` pose two questions that are about sets:

pixels   Which digit is this set of inked pixels? A key is a pixel that carries ink: its row and column as waves, and its
         ink; the query is their average, weighed by ink. An image has 16 to 42 keys; rows of NaN pad the others.
         Ten targets, one per digit; the largest prediction is the answer.
matches  What share of these 4 to 12 images shows the same digit as the query's? A token is an image, by its first 16
         principal components, scaled to length one. The learner is given shares only, never which digit an image shows.
         Training and test sequences have no image in common.

    python studies/digits_as_sets.py --figure digits.png

Scikit-learn's regressors need rows of equal length. They get the same tokens end to end, with zeros for missing ones. They
also get features that a person would make by hand: for `pixels` the image itself, for `matches` the query beside the average
key, or their mean cosine. Everything is tuned inside the training folds: penalties of attention and ridge by leave-one-out,
kernel ridge by three inner folds, the network by a held-out quarter and early stopping. All methods are scored on the same
five folds of images. The standard error over folds is a guide rather than an interval, because training sets overlap.
Finally the keys of the test sequences are permuted, which changes no set.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from attlas.claims.figure import COLOURS, MARKERS, panels
from attlas.features import RandomAttentionRegressor
from attlas.numerics import stream

COMPONENTS = 16
MOST_KEYS = 12  # images beside the query in a sequence of `matches`
PENALTIES = np.logspace(-4, 4, 17)
SQUARES = "neg_mean_squared_error"
KINDS = ("attention", "tokens end to end", "made by hand")


class Setting(NamedTuple):
    """Images, folds, training and test sequences of `matches` in a fold, heads, neurons of the MLP (0: none)."""

    images: int
    folds: int
    sequences: tuple[int, int]
    heads: int
    neurons: int


DEFAULT = Setting(1797, 5, (1000, 400), 1000, 200)
QUICK = Setting(400, 2, (250, 150), 200, 0)


class Row(NamedTuple):
    """What was found of a method: its kind, scores and scores after a permutation by fold, seconds, largest change."""

    kind: str
    scores: np.ndarray
    permuted: np.ndarray
    seconds: np.ndarray
    change: float


def main():
    options = arguments()
    setting = QUICK if options.quick else DEFAULT
    images, digits = (part[: setting.images] for part in load_digits(return_X_y=True))
    found = {}
    for question, folds_of, methods, score in (
        ("pixels", pixel_folds, pixel_methods(setting), accuracy),
        ("matches", match_folds, match_methods(setting), r2_score),
    ):
        found[question] = compare(folds_of(images / 16, digits, setting), methods, score, question)
        print(table(found[question], question))
    if options.figure:
        draw(found).savefig(options.figure, dpi=90)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: fewer images, folds and heads, no MLP")
    parser.add_argument("--figure", type=Path, help="where to draw the scores, such as digits.png")
    options = parser.parse_args()
    if options.figure and not options.figure.parent.is_dir():
        parser.error(f"the folder {options.figure.parent} does not exist; make it first")
    return options


def compare(folds, methods, score, question):
    """Return a `Row` for each method: fitted and scored on every fold, then scored with the test keys in another order."""
    measured = {name: [] for name in methods}
    for fold, (X, y, X_test, y_test) in enumerate(folds):
        shuffled = permuted(X_test, stream(fold, "order"))
        for name, (_, model) in methods.items():
            start = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - start
            before, after = model.predict(X_test), model.predict(shuffled)
            measured[name].append((score(y_test, before), score(y_test, after), seconds, np.abs(after - before).max()))
        print(f"{question}: fold {fold + 1} done", file=sys.stderr, flush=True)
    columns = {name: np.array(rows).T for name, rows in measured.items()}
    return {name: Row(methods[name][0], *values[:3], values[3].max()) for name, values in columns.items()}


def permuted(X, rng):
    """Return the sequences with their keys in an order drawn for each. Missing keys stay at the end."""
    missing = np.isnan(X[:, 1:, 0])
    order = np.where(missing, 2.0, rng.random(missing.shape)).argsort(axis=1)
    return np.concatenate([X[:, :1], np.take_along_axis(X[:, 1:], order[:, :, None], axis=1)], axis=1)


def pixel_folds(images, digits, setting):
    """Yield training and test sequences of inked pixels, with one target per digit."""
    X, Y = inked_pixels(images), np.eye(10)[digits]
    for train, test in folds(setting, images):
        yield X[train], Y[train], X[test], Y[test]


def inked_pixels(images):
    """Return (n, 1 + most pixels, 9): sine and cosine of row and column at two frequencies, and the ink."""
    place = np.pi / 2 * (np.arange(8) - 3.5) / 3.5
    waves = np.stack([f(k * place) for k in (1, 2) for f in (np.sin, np.cos)], axis=1)  # (8, 4)
    grid = np.concatenate([np.repeat(waves, 8, axis=0), np.tile(waves, (8, 1))], axis=1)  # (64, 8)
    X = np.full((len(images), 1 + (images > 0).sum(1).max(), 9), np.nan)
    for sequence, image in zip(X, images, strict=True):
        inked = image > 0
        keys = np.column_stack([grid[inked], image[inked]])
        sequence[0] = np.average(keys, axis=0, weights=image[inked])
        sequence[1 : 1 + len(keys)] = keys
    return X


def images_again(X):
    """Return the images (n, 64) that the sequences of inked pixels came from, in whatever order those are."""
    grid = inked_pixels(np.ones((1, 64)))[0, 1:, :8]
    images = np.zeros((len(X), 64))
    for image, keys in zip(images, X[:, 1:], strict=True):
        present = keys[~np.isnan(keys[:, 0])]
        image[(present[:, :8] @ grid.T).argmax(1)] = present[:, 8]
    return images


def match_folds(images, digits, setting):
    """Yield training and test sequences of images, with the share of keys that show the query's digit."""
    for fold, (train, test) in enumerate(folds(setting, images)):
        components = PCA(COMPONENTS, svd_solver="full").fit(images[train])
        made = []
        for part, n, name in ((train, setting.sequences[0], "train"), (test, setting.sequences[1], "test")):
            points = components.transform(images[part])
            points /= np.linalg.norm(points, axis=1, keepdims=True)
            made += matches(points, digits[part], n, stream(fold, name))
        yield made


def matches(points, digits, n, rng):
    """Draw a query, 4 to 12 keys, and how many of them match it: all numbers are equally likely."""
    X, shares = np.full((n, 1 + MOST_KEYS, points.shape[1]), np.nan), np.empty(n)
    for i in range(n):
        query, keys = rng.integers(len(points)), rng.integers(4, MOST_KEYS + 1)
        same = digits == digits[query]
        alike, others = np.flatnonzero(same & (np.arange(len(digits)) != query)), np.flatnonzero(~same)
        count = rng.integers(0, keys + 1)
        chosen = [rng.choice(alike, count, replace=False), rng.choice(others, keys - count, replace=False)]
        X[i, 0], X[i, 1 : 1 + keys] = points[query], points[rng.permutation(np.concatenate(chosen))]
        shares[i] = count / keys
    return [X, shares]


def folds(setting, images):
    return KFold(setting.folds, shuffle=True, random_state=0).split(images)


def pixel_methods(setting):
    by_hand = regressors(setting, KINDS[2], images_again, "image")
    return attention(setting) | regressors(setting, KINDS[1], end_to_end, "tokens") | by_hand


def match_methods(setting):
    by_hand = regressors(setting, KINDS[2], query_and_mean, "query, mean key")
    by_hand["mean cosine"] = (KINDS[2], make_pipeline(FunctionTransformer(mean_cosine), RidgeCV(PENALTIES)))
    # their kernel takes all pairs of keys, of which pixels would have a thousand for each pair of images
    limit = {"attention, infinite heads": (KINDS[0], RandomAttentionRegressor("infinite"))}
    return attention(setting) | limit | regressors(setting, KINDS[1], end_to_end, "tokens") | by_hand


def attention(setting):
    """Return layers without and with bias."""
    M = setting.heads
    return {
        f"attention, {M} heads": (KINDS[0], RandomAttentionRegressor(M, random_state=0)),
        f"attention, {M} heads, bias 1": (KINDS[0], RandomAttentionRegressor(M, bias=1.0, random_state=0)),
    }


def regressors(setting, kind, rows, name):
    """Return scikit-learn's regressors on `rows` of the sequences, each with its own tuning."""
    widths = {"alpha": np.logspace(-4, -1, 4), "gamma": np.logspace(-2.5, 0, 6)}
    tuned = {
        "ridge": RidgeCV(PENALTIES),
        "RBF kernel ridge": GridSearchCV(KernelRidge(kernel="rbf"), widths, cv=3, scoring=SQUARES),
    }
    if setting.neurons:
        network = MLPRegressor(
            hidden_layer_sizes=(setting.neurons,),
            learning_rate_init=0.002,
            early_stopping=True,
            max_iter=2000,
            random_state=0,
        )
        quarter = ShuffleSplit(1, test_size=0.25, random_state=0)
        tuned["MLP"] = GridSearchCV(network, {"alpha": [1e-2, 1]}, cv=quarter, scoring=SQUARES)
    return {f"{label}, {name}": (kind, make_pipeline(FunctionTransformer(rows), m)) for label, m in tuned.items()}


def end_to_end(X):
    return np.nan_to_num(X).reshape(len(X), -1)


def query_and_mean(X):
    return np.concatenate([X[:, 0], np.nanmean(X[:, 1:], axis=1)], axis=1)


def mean_cosine(X):
    return np.nanmean(np.einsum("nd,nkd->nk", X[:, 0], X[:, 1:]), axis=1)[:, None]


def accuracy(Y, predicted):
    return np.mean(Y.argmax(1) == predicted.argmax(1))


def table(rows, question):
    """Return a Markdown table of scores, of what a permutation of the test keys does, and of the seconds of a fit."""
    score = "accuracy" if question == "pixels" else "R²"
    lines = [f"| {question:<33} | {score:<15} | test keys permuted | largest change | fit, s |", "|---" * 5 + "|"]
    for name, row in rows.items():
        cells = (
            f"{entry(row.scores):<15} | {entry(row.permuted):<18} | {row.change:<14.1e} | {row.seconds.mean():<6.2f}"
        )
        lines.append(f"| {name:<33} | {cells} |")
    return "\n".join(lines) + "\n"


def entry(values):
    return f"{values.mean():.3f} ± {standard_error(values):.3f}"


def standard_error(values):
    return values.std(ddof=1) / np.sqrt(len(values))


def draw(found):
    """Draw the scores as filled points, and those after a permutation of the test keys as open ones."""
    figure, axes = panels(len(found), width=6.2, height=4.0)
    labels = {
        "pixels": "accuracy: which digit is this set of pixels?",
        "matches": "R²: which share of the keys matches?",
    }
    for axis, (question, rows) in zip(axes, found.items(), strict=True):
        for height, row in enumerate(reversed(rows.values())):
            look = {"color": COLOURS[KINDS.index(row.kind)], "marker": MARKERS[KINDS.index(row.kind)], "capsize": 2}
            axis.errorbar(row.scores.mean(), height, xerr=standard_error(row.scores), ms=5, **look)
            axis.errorbar(row.permuted.mean(), height, ms=9, mfc="none", **look)
        axis.set_yticks(range(len(rows)), list(reversed(rows)), fontsize=8)
        axis.set_xlabel(labels[question])
    for kind, colour, marker in zip(KINDS, COLOURS, MARKERS, strict=False):
        axes[0].plot([], [], color=colour, marker=marker, ls="", label=kind)
    axes[0].plot([], [], color="#555555", marker="o", ms=9, mfc="none", ls="", label="test keys permuted")
    figure.legend(loc="outside lower center", ncols=len(KINDS) + 1, frameon=False)
    return figure


if __name__ == "__main__":
    main()
