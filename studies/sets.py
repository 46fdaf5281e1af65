"""Sets of tokens in practice: attention with frozen random heads beside scikit-learn's classifiers and a trained network.

    python studies/sets.py                       all problems of set_problems.py, five folds: about 20 minutes on one core
    python studies/sets.py --problems few-shot   one of them
    python studies/sets.py --out sets.json       scores and times by fold, too
    python studies/sets.py --curve               the few-shot problem by the number of training sets

Attention is fitted twice. As it comes: tokens scaled by `StandardTokens`, 300 heads, relu, no bias, the penalty by
leave-one-out, the same for all problems. Tuned: leave-one-out also chooses whether tokens are scaled, and a bias of 0 or 1.
The others choose scaling, too, and penalties and widths, by inner folds (set_rivals.py). Every token is the query in turn,
except where a problem has one. Models on pooled tokens see the mean, the largest value and the deviation of each column over
a set. The last rows of each table are given more than the set: rows in their layout, whole words, or a rule that a person
thought of. Nothing is chosen on test sets.

Differences are the accuracy of tuned attention minus that of the row, paired by fold. Their standard error is widened
because training sets overlap (Nadeau and Bengio 2003: 1/k + n_test/n_train in place of 1/k). Attention `wins` or `loses`
where the 95 % interval (Student's t) excludes 0, and `ties` elsewhere. Time is CPU time of one thread for tuning, fit and
predictions, the mean over folds.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student
from set_problems import PROBLEMS, QUICK, Size
from set_rivals import on_layout, on_sets
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from attlas.features import RandomAttentionClassifier, StandardTokens

HEADS = 300
TUNED = "attention, tuned"
KINDS = ("attention", "on the set", "given more")


class Row(NamedTuple):
    """What was found of a method: its kind, and by fold accuracy, CPU seconds, and test over training size."""

    kind: str
    scores: list[float]
    seconds: list[float]
    ratios: list[float]


def main():
    options = arguments()
    if options.curve:
        print(curve(options.curve, options.heads))
        return
    found = {}
    for name in options.problems:
        with threadpool_limits(1):
            found[name] = compare(name, QUICK if options.quick else Size(), options.heads)
        print(table(name, found[name]), flush=True)
    print(summary(found))
    if options.out:
        options.out.write_text(json.dumps({n: {m: row._asdict() for m, row in r.items()} for n, r in found.items()}))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="seconds: two folds, fewer sets")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--heads", type=int, default=HEADS)
    parser.add_argument(
        "--curve", type=int, nargs="*", metavar="SETS", help="few-shot at these numbers of training sets"
    )
    parser.add_argument("--out", type=Path, help="where to write scores and times by fold, such as sets.json")
    options = parser.parse_args()
    options.curve = [100, 300, 1000] if options.curve == [] else options.curve
    if options.out and not options.out.parent.is_dir():
        parser.error(f"the folder {options.out.parent} does not exist; make it first")
    return options


def attention(heads, query):
    """Return attention as it comes, and with scaling and bias chosen inside the training sets."""
    plain, *others = (
        make_pipeline(scaled, RandomAttentionClassifier(heads, query=query, bias=bias, random_state=0))
        for scaled in (StandardTokens(), "passthrough")
        for bias in (0.0, 1.0)
    )
    return {f"attention, {heads} heads": plain, TUNED: ByLeaveOneOut([clone(plain), *others])}


class ByLeaveOneOut(ClassifierMixin, BaseEstimator):
    """Of several pipelines, the one whose classifier has the smallest squared leave-one-out error."""

    def __init__(self, models):
        self.models = models

    def fit(self, sets, labels):
        self.model_ = min(
            (model.fit(sets, labels) for model in self.models), key=lambda m: m[-1].loo_errors_.mean(1).min()
        )
        self.classes_ = self.model_.classes_
        return self

    def predict(self, sets):
        return self.model_.predict(sets)


def curve(sizes, heads):
    """Return a Markdown table of the accuracy on the few-shot problem, by the number of sets to learn from."""
    methods = (TUNED, "SVM, mean embedding", "DeepSets, trained", "nearest example, by hand")
    lines = [f"| training sets | {' | '.join(methods)} |", "|---" * (1 + len(methods)) + "|"]
    for n in sizes:
        with threadpool_limits(1):
            rows = compare("few-shot", Size(drawn=(n, 400)), heads, methods)
        cells = [f"{entry(rows[m].scores)}: {difference(rows[TUNED], rows[m])[2]}" for m in methods[1:]]
        lines.append(f"| {n} | {' | '.join([entry(rows[TUNED].scores), *cells])} |")
    return "\n".join(lines)


def compare(name, size, heads, only=None):
    """Return a `Row` for each method, or for those named: fitted and scored on every fold."""
    problem = PROBLEMS[name]
    kinds = [attention(heads, problem.query), on_sets(problem.query, size), on_layout(problem.layout, size.trees)]
    kinds = [{m: model for m, model in models.items() if only is None or m in only} for models in kinds]
    rows = {method: Row(kind, [], [], []) for kind, models in zip(KINDS, kinds, strict=True) for method in models}
    for fold, (train, test) in enumerate(problem.folds(size)):
        for method, model in (kinds[0] | kinds[1] | kinds[2]).items():
            row = rows[method]
            given = "layout" if row.kind == KINDS[2] else "sets"
            start = time.process_time()
            labels = model.fit(getattr(train, given), train.labels).predict(getattr(test, given))
            row.seconds.append(time.process_time() - start)
            row.scores.append(float(np.mean(labels == test.labels)))
            row.ratios.append(len(test.labels) / len(train.labels))
        print(f"{name}: fold {fold + 1} done", file=sys.stderr, flush=True)
    return rows


def difference(row, other):
    """Return mean and standard error of the paired difference of scores, and "wins", "loses" or "ties"."""
    paired = np.subtract(row.scores, other.scores)
    folds = len(paired)
    error = np.sqrt((1 / folds + np.mean(row.ratios)) * paired.var(ddof=1))
    far = abs(paired.mean()) > student.ppf(0.975, folds - 1) * error
    return paired.mean(), error, ("wins" if paired.mean() > 0 else "loses") if far else "ties"


def table(name, rows):
    """Return a Markdown table of the methods on one problem."""
    head = f"{name}: {PROBLEMS[name].question}"
    lines = [f"| {head} | accuracy | attention minus it | attention | CPU s |", "|---" * 5 + "|"]
    ours = rows[TUNED]
    for method, row in rows.items():
        compared = " | "
        if row.kind != KINDS[0]:
            mean, error, verdict = difference(ours, row)
            compared = f"{mean:+.3f} ± {error:.3f} | {verdict}"
        lines.append(f"| {method} | {entry(row.scores)} | {compared} | {np.mean(row.seconds):.2f} |")
    return "\n".join(lines) + "\n"


def summary(found):
    """Return a Markdown table of all problems: accuracy (CPU seconds), and what tuned attention does beside the others."""
    heads = (
        "attention",
        "tuned",
        "best on pooled tokens",
        "SVM, mean embedding",
        "DeepSets, trained",
        "best given more",
    )
    lines = [f"| problem | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for name, rows in found.items():
        cells = [brief(row) for row in rows.values() if row.kind == KINDS[0]]
        pooled, more = (best(rows, of) for of in (lambda m: m.endswith("pooled"), lambda m: rows[m].kind == KINDS[2]))  # noqa: B023
        for method in (pooled, *heads[3:5], more):
            label = f"{method.removesuffix(', pooled')}: " if method in (pooled, more) else ""
            cells.append(f"{label}{brief(rows[method])}: {difference(rows[TUNED], rows[method])[2]}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def brief(row):
    return f"{np.mean(row.scores):.3f} ({np.mean(row.seconds):.1f} s)"


def best(rows, allowed):
    return max(filter(allowed, rows), key=lambda method: np.mean(rows[method].scores))


def entry(scores):
    return f"{np.mean(scores):.3f} ± {np.std(scores, ddof=1) / np.sqrt(len(scores)):.3f}"


if __name__ == "__main__":
    main()
