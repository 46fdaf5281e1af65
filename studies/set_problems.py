"""Real problems about sets, made from data that come with scikit-learn and with Python itself.

Every problem yields five folds. Whatever is fitted to make tokens (means, principal components, word vectors) is fitted on
the training part of a fold. Sets that are drawn from images have no image in common between training and test.
"""

import ast
import re
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.extmath import randomized_svd

from attlas.numerics import stream

PACKAGES = (
    "_pydecimal",
    "asyncio",
    "email",
    "http",
    "importlib",
    "logging",
    "multiprocessing",
    "unittest",
    "urllib",
    "xml",
)
COMPONENTS = 16  # of an image that is one token
WORD_SIZE = 24  # numbers of a word vector


class Part(NamedTuple):
    """Sets, arrays (tokens, d), their labels, and what a person who knows the layout would give a model instead."""

    sets: list
    labels: np.ndarray
    layout: np.ndarray | list


class Problem(NamedTuple):
    """What is asked; which token is the query; what `layout` holds; training and test parts, fold by fold."""

    question: str
    query: str | None
    layout: str  # "rows", "texts", or the name of a rule made by hand
    folds: Callable[["Size"], Iterator[tuple[Part, Part]]]


class Size(NamedTuple):
    """Folds; images, rows, docstrings of a package; sets drawn for training and test; trees, widths and epochs of rivals."""

    folds: int = 5
    images: int = 1797
    rows: int = 569
    texts: int = 200
    drawn: tuple[int, int] = (1200, 400)
    trees: int = 300
    widths: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
    epochs: int = 300


QUICK = Size(folds=2, images=300, rows=200, texts=25, drawn=(200, 100), trees=30, widths=(0.25, 2.0), epochs=20)


def pixels(size):
    """A token is an inked pixel: row, column, ink. An image has 16 to 42 of them."""
    images, digits = (part[: size.images] for part in load_digits(return_X_y=True))
    sets = [np.column_stack([*np.divmod(np.flatnonzero(image), 8), image[image > 0]]) for image in images]
    yield from split(sets, digits, images, size)


def columns(missing):
    """A token is a known entry of a row: a one-hot code of its column, and its value; columns go missing at random."""

    def folds(size):
        X, y = (part[: size.rows] for part in load_breast_cancer(return_X_y=True))
        known = stream(0, "known").random(X.shape) >= missing
        for train, test in splits(y, size):
            mean, deviation = X[train].mean(0), X[train].std(0)
            rows = np.where(known, (X - mean) / deviation, np.nan)
            sets = [np.column_stack([np.eye(X.shape[1])[k], row[k]]) for row, k in zip(rows, known, strict=True)]
            yield part_of(sets, y, rows, train), part_of(sets, y, rows, test)

    return folds


def docstrings(size):
    """A token is a word of a docstring of the standard library, as a vector; the label is the package it stands in."""
    texts, labels = [], []
    for package in PACKAGES:
        found = sorted(set(words_of(package)))
        chosen = stream(0, package).permutation(len(found))[: size.texts]
        texts += [found[i] for i in chosen]
        labels += [package] * len(chosen)
    for train, test in splits(labels, size):
        vectors = word_vectors([texts[i] for i in train])
        nothing = np.zeros((1, WORD_SIZE))
        sets = [np.array([vectors[w] for w in dict.fromkeys(text) if w in vectors] or nothing) for text in texts]
        plain = [" ".join(text) for text in texts]
        yield part_of(sets, labels, plain, train), part_of(sets, labels, plain, test)


def words_of(package):
    """Yield the docstrings of functions and classes, as tuples of lower-case words. Nothing is imported or run."""
    root = Path(sysconfig.get_path("stdlib")) / package
    for path in sorted(root.rglob("*.py")) if root.is_dir() else [root.with_suffix(".py")]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                words = tuple(re.findall("[a-z]+", (ast.get_docstring(node) or "").lower()))
                if len(words) >= 4:
                    yield words


def word_vectors(texts, window=4, least=3):
    """Return {word: vector of length one}: singular vectors of the positive pointwise mutual information of neighbours."""
    counts = Counter(word for text in texts for word in text)
    index = {word: i for i, word in enumerate(sorted(w for w in counts if counts[w] >= least))}
    pairs = Counter()
    for text in texts:
        known = [index[word] for word in text if word in index]
        for place, i in enumerate(known):
            for j in known[max(0, place - window) : place]:
                pairs.update([(i, j), (j, i)])
    (i, j), together = np.array(list(pairs)).T, np.array(list(pairs.values()), dtype=float)
    alone = np.bincount(i, weights=together, minlength=len(index))
    information = np.maximum(np.log(together * alone.sum() / (alone[i] * alone[j])), 0)
    table = sparse.csr_array((information, (i, j)), shape=(len(index), len(index)))
    left, values, _ = randomized_svd(table, WORD_SIZE, random_state=0)
    vectors = left * np.sqrt(values)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return {word: vectors[i] for word, i in index.items()}


def of_images(draw):
    """A token is an image by its first principal components, scaled to length one; `draw` makes one set and its label."""

    def folds(size):
        images, digits = (part[: size.images] for part in load_digits(return_X_y=True))
        for fold, (train, test) in enumerate(splits(digits, size)):
            points = PCA(COMPONENTS, svd_solver="full").fit(images[train]).transform(images)
            points /= np.linalg.norm(points, axis=1, keepdims=True)
            parts = []
            for name, chosen, n in (("train", train, size.drawn[0]), ("test", test, size.drawn[1])):
                rng = stream(fold, name)
                of_digit = [points[chosen[digits[chosen] == digit]] for digit in range(10)]
                sets, labels = zip(*(draw(of_digit, rng) for _ in range(n)), strict=True)
                parts.append(Part(list(sets), np.array(labels), list(sets)))
            yield tuple(parts)

    return folds


def twice(count):
    """Draw `count` images of different digits, or with one digit twice; the label says which."""

    def draw(of_digit, rng):
        label = int(rng.integers(2))
        first, *others = rng.permutation(10)[: count - label]
        tokens = [rng.choice(of_digit[first], 1 + label, replace=False), *(rng.choice(of_digit[k], 1) for k in others)]
        return rng.permutation(np.concatenate(tokens)), label

    return draw


def few_shot(of_digit, rng):
    """Draw a query, and one to four examples of its digit and of another, marked 1 and -1 at random: which is the query?"""
    (one, other), mark = rng.permutation(10)[:2], rng.choice([-1, 1])
    count = rng.integers(1, 5)
    query, *alike = rng.choice(of_digit[one], 1 + count, replace=False)
    others = rng.choice(of_digit[other], count, replace=False)
    marks = np.repeat([mark, -mark], count)
    return np.vstack([np.append(query, 0), np.column_stack([np.vstack([alike, others]), marks])]), int(mark)


def splits(labels, size):
    return StratifiedKFold(size.folds, shuffle=True, random_state=0).split(np.zeros(len(labels)), labels)


def split(sets, labels, layout, size):
    for train, test in splits(labels, size):
        yield part_of(sets, labels, layout, train), part_of(sets, labels, layout, test)


def part_of(sets, labels, layout, chosen):
    rows = layout[chosen] if isinstance(layout, np.ndarray) else [layout[i] for i in chosen]
    return Part([sets[i] for i in chosen], np.asarray(labels)[chosen], rows)


PROBLEMS = {
    "pixels": Problem("Which digit is this set of inked pixels?", None, "rows", pixels),
    "columns": Problem("Malignant, from a set of (column, value)?", None, "rows", columns(0.0)),
    "half the columns": Problem("The same, half of the columns missing at random", None, "rows", columns(0.5)),
    "docstrings": Problem("Which package has this docstring, a set of words?", None, "texts", docstrings),
    "two alike": Problem("Do these two images show the same digit?", None, "pairs", of_images(twice(2))),
    "a pair in four": Problem("Do two of these four images show the same digit?", None, "pairs", of_images(twice(4))),
    "few-shot": Problem(
        "Which of two groups of 1 to 4 images has the query's digit?", "first", "nearest", of_images(few_shot)
    ),
}
