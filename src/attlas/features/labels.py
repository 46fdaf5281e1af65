"""What the classifier accepts as labels, and the numbers it learns in their place."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.utils.validation import column_or_1d

from attlas.errors import InputError
from attlas.inputs import described, plain

Array = NDArray[Any]


@dataclass(frozen=True)
class Classes:
    """The classes, and what scores say about them.

    Attributes
    ----------
    names : array of shape (classes,)
        Sorted; for a multi-label problem the numbers of the columns.
    kind : {"binary", "multi-class", "multi-label"}
    """

    names: Array
    kind: Literal["binary", "multi-class", "multi-label"]

    def codes(self, index: Array) -> Array:
        """Return +1 for the class of a sample and -1 for the others, (n, outputs); two classes have one output."""
        if self.kind == "multi-label":
            return 2.0 * index - 1.0
        if self.kind == "binary":
            return 2.0 * index[:, None] - 1.0
        return 2.0 * (index[:, None] == np.arange(len(self.names))) - 1.0

    def predict(self, logits: Array) -> Array:
        """Return the most probable labels."""
        if self.kind == "multi-label":
            return (logits > 0).astype(int)
        chosen = (logits[:, 0] > 0).astype(int) if self.kind == "binary" else np.argmax(logits, axis=1)
        return np.asarray(self.names[chosen])

    def probabilities(self, logits: Array) -> Array:
        """Return the probabilities of classes (n, classes), or of every label on its own."""
        if self.kind == "multi-label":
            return np.asarray(expit(logits))
        if self.kind == "binary":
            return np.asarray(expit(np.concatenate([-logits, logits], axis=1)))
        return np.asarray(softmax(logits, axis=1))


def read_labels(y: Any, n: int, classes: Any = None) -> tuple[Classes, Array]:
    """Return the classes and, for every sample, the number of its own: (n,), or zeros and ones (n, labels).

    Parameters
    ----------
    y : array_like of shape (n,) or (n, labels)
        Labels of any one kind that can be sorted, or a matrix of zeros and ones, a column per label.
    n : int
        How many there must be.
    classes : array_like, optional
        All that there are, of which y may lack some.
    """
    given = checked_labels(y, n)
    if given.ndim == 2:
        if classes is not None and len(np.atleast_1d(classes)) != given.shape[1]:
            raise InputError(f"classes must number the {given.shape[1]} columns of y; got {described(classes)}")
        return Classes(np.arange(given.shape[1]), "multi-label"), given.astype(int)
    names = _sorted(given) if classes is None else _sorted(_of_one_kind(classes, "classes"))
    if len(names) < 2:
        raise InputError(
            f"y has only one class, {described(names[:1].tolist()[0])}; a classifier needs at least two classes"
        )
    try:
        index = np.searchsorted(names, given).clip(max=len(names) - 1)
        unknown = np.flatnonzero(names[index] != given)
    except TypeError as error:
        raise InputError("y has labels of another kind than classes") from error
    if len(unknown):
        raise InputError(f"y has the label {described(given[unknown[:1]].tolist()[0])}, which is not among the classes")
    return Classes(names, "binary" if len(names) == 2 else "multi-class"), np.asarray(index)


def checked_labels(y: Any, n: int) -> Array:
    """Return labels (n,), or zeros and ones (n, labels), or raise `InputError`."""
    if y is None:
        raise InputError("RandomAttentionClassifier requires y to be passed, but the target y is None")
    if issparse(y):
        raise InputError("y is sparse; give an array of zeros and ones, such as y.toarray()")
    given = _of_one_kind(y, "y")
    if given.ndim == 2 and given.shape[1] == 1 and len(given) == n:
        given = column_or_1d(given, warn=True)
    if given.ndim not in (1, 2) or len(given) != n or 0 in given.shape[1:]:
        raise InputError(f"y must have shape (n,), or (n, labels), with n = {n}; got {given.shape}")
    if given.ndim == 2 and not (given.dtype.kind in "biuf" and np.isin(given, (0, 1)).all()):
        raise InputError(
            "y of shape (n, labels) must be zeros and ones, a column per label;"
            " several outputs with classes of their own need a classifier each"
        )
    return given


def _of_one_kind(labels: Any, name: str) -> Array:
    """Return labels as an array, none of them missing."""
    given = plain(labels, name, "labels of shape (n,)")
    if given.dtype.kind == "c" or (given.dtype.kind == "f" and not np.isfinite(given).all()):
        raise InputError(f"{name} has labels that are not finite numbers (NaN, infinite or complex)")
    if given.dtype.kind in "mM" and np.isnat(given).any():
        raise InputError(f"{name} has missing labels (NaT)")
    if given.dtype.kind == "f" and np.any(given != np.round(given)):
        raise InputError(
            f"Unknown label type: continuous. {name} has fractions such as {given[given != np.round(given)].flat[0]:g};"
            " classes are integers, strings or the like, and a regressor learns real numbers"
        )
    if isinstance(labels, list | tuple) or given.dtype.kind == "O":
        entries = labels if given.ndim == 1 else given.ravel().tolist()
        if any(_missing(entry) for entry in entries):
            raise InputError(f"{name} has missing labels (None or NaN)")
        if given.dtype.kind == "U" and given.ndim == 1 and not all(isinstance(entry, str) for entry in entries):
            raise InputError(f"{name} mixes strings and other labels; give labels of one kind")
    return given


def _missing(entry: Any) -> bool:
    return (
        entry is None or type(entry).__name__ in ("NAType", "NaTType") or (isinstance(entry, float) and np.isnan(entry))
    )


def _sorted(labels: Array) -> Array:
    if labels.ndim != 1 or not len(labels):
        raise InputError(f"classes must be a list of labels; got shape {labels.shape}")
    try:
        return np.unique(labels)
    except TypeError as error:
        raise InputError(
            "y mixes labels that cannot be sorted, such as strings and numbers; give labels of one kind"
        ) from error
