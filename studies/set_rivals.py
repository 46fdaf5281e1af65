"""What attention is compared with on sets: scikit-learn on pooled tokens, mean embeddings, and a small trained network.

Every model has the choice that tuned attention has, whether its inputs are scaled by column; trees do not depend on it. The
choice is made, with penalties and widths, by three inner folds of the training sets. The network chooses scaling and weight
decay by the loss on a tenth of the training sets, on which it also stops early. Everything else is fixed for all problems.
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from attlas.numerics import stream

PENALTIES = [0.01, 0.1, 1, 10, 100]


def on_sets(query, size):
    """Return the models that see sets; with a query, it is put beside each of its keys."""
    beside = [FunctionTransformer(query_beside_keys)] if query == "first" else []
    pooled = [*beside, FunctionTransformer(mean_max_deviation)]
    network = MLPClassifier((100,), early_stopping=True, n_iter_no_change=30, max_iter=1000, random_state=0)
    embedding = make_pipeline(*beside, MeanEmbedding(), StandardScaler(), SVC())
    choices = {
        "meanembedding__scaled": [True, False],
        "meanembedding__width": size.widths,
        "svc__C": [1, 10, 100],
    }
    return {
        "logistic, pooled": make_pipeline(*pooled, logistic()),
        "random forest, pooled": make_pipeline(*pooled, RandomForestClassifier(size.trees, random_state=0)),
        "boosted trees, pooled": make_pipeline(*pooled, HistGradientBoostingClassifier(random_state=0)),
        "SVM, pooled": make_pipeline(*pooled, svm()),
        "MLP, pooled": make_pipeline(*pooled, scaled_or_not(network, {})),
        "SVM, mean embedding": GridSearchCV(embedding, choices, cv=3),
        "DeepSets, trained": make_pipeline(*beside, ByHeldOutLoss(size.epochs)),
    }


def on_layout(layout, trees):
    """Return the models that are given more than the set: rows in their layout, texts, or a rule made by hand."""
    if layout == "texts":
        return {"logistic, TF-IDF of words": make_pipeline(TfidfVectorizer(), plain_logistic())}
    if layout == "nearest":
        return {"nearest example, by hand": NearestExample()}
    if layout == "pairs":
        return {"largest cosine, by hand": make_pipeline(FunctionTransformer(largest_cosine), plain_logistic())}
    filled = SimpleImputer(keep_empty_features=True)
    return {
        "logistic, rows": make_pipeline(filled, logistic()),
        "random forest, rows": make_pipeline(filled, RandomForestClassifier(trees, random_state=0)),
        "boosted trees, rows": HistGradientBoostingClassifier(random_state=0),
        "SVM, rows": make_pipeline(filled, svm()),
    }


def plain_logistic():
    return GridSearchCV(LogisticRegression(max_iter=5000), {"C": PENALTIES}, cv=3)


def logistic():
    return scaled_or_not(LogisticRegression(max_iter=5000), {"C": PENALTIES})


def svm():
    return scaled_or_not(SVC(), {"C": [1, 10, 100]})


def scaled_or_not(model, choices):
    """Return `model` with columns scaled or as they are, and with its own `choices`, by three inner folds."""
    name = type(model).__name__.lower()
    both = {"standardscaler": [StandardScaler(), "passthrough"]}
    own = {f"{name}__{key}": values for key, values in choices.items()}
    return GridSearchCV(make_pipeline(StandardScaler(), model), both | own, cv=3)


def query_beside_keys(sets):
    return [np.column_stack([np.repeat(x[:1], len(x) - 1, axis=0), x[1:]]) for x in sets]


def mean_max_deviation(sets):
    return np.array([np.concatenate([x.mean(0), x.max(0), x.std(0)]) for x in sets])


def largest_cosine(sets):
    return np.array([[(x @ x.T - 2 * np.eye(len(x))).max()] for x in sets])  # tokens have length one


def mean_of(tokens, counts):
    """Return the mean over each set of tokens end to end."""
    starts = np.concatenate([[0], counts.cumsum()[:-1]])
    return np.add.reduceat(tokens, starts, axis=0) / counts[:, None].astype(tokens.dtype)


class Standardised:
    """Tokens end to end, if `scaled` each column with mean 0 and deviation 1 in the training sets."""

    def _learn(self, sets):
        tokens = np.concatenate(sets)
        self.mean_, deviation = tokens.mean(0), tokens.std(0)
        self.deviation_ = np.where(deviation > 0, deviation, 1)
        if not self.scaled:
            self.mean_, self.deviation_ = np.zeros_like(self.mean_), np.ones_like(deviation)
        return self._tokens(sets)[0]

    def _tokens(self, sets):
        counts = np.array([len(x) for x in sets])
        return ((np.concatenate(sets) - self.mean_) / self.deviation_).astype(np.float32), counts


class MeanEmbedding(Standardised, TransformerMixin, BaseEstimator):
    """Means of random Fourier features of the tokens: a Gaussian kernel, `width` times their median distance wide."""

    def __init__(self, width=1.0, features=300, scaled=True):
        self.width = width
        self.features = features
        self.scaled = scaled

    def fit(self, sets, y=None):  # noqa: ARG002
        tokens, rng = self._learn(sets), stream(0, "embedding")
        one, other = tokens[rng.integers(len(tokens), size=(2, 2000))]
        scale = self.width * np.median(np.linalg.norm(one - other, axis=1))
        self.waves_ = (rng.standard_normal((tokens.shape[1], self.features)) / scale).astype(np.float32)
        self.phases_ = rng.uniform(0, 2 * np.pi, self.features).astype(np.float32)
        return self

    def transform(self, sets):
        tokens, counts = self._tokens(sets)
        return mean_of(np.cos(tokens @ self.waves_ + self.phases_), counts)


class NearestExample(ClassifierMixin, BaseEstimator):
    """The mark of the example whose cosine with the query is largest: nothing is learned."""

    def fit(self, sets, labels):  # noqa: ARG002
        self.classes_ = np.unique(labels)
        return self

    def predict(self, sets):
        return np.array([x[1 + (x[1:, :-1] @ x[0, :-1]).argmax(), -1] for x in sets]).astype(int)


class DeepSets(Standardised, ClassifierMixin, BaseEstimator):
    """A network on the mean of a network: softmax(rho(mean_i phi(x_i))), all of it trained, by Adam.

    phi has two layers of `width` rectifiers, rho one and a linear layer. A tenth of the training sets says when to stop.
    """

    def __init__(self, width=64, epochs=300, patience=30, step=2e-3, batch=64, decay=1e-4, scaled=True):
        self.width = width
        self.epochs = epochs
        self.patience = patience
        self.step = step
        self.batch = batch
        self.decay = decay
        self.scaled = scaled

    def fit(self, sets, labels):
        rng = stream(0, "network")
        self.classes_, labels = np.unique(labels, return_inverse=True)
        h, d = self.width, self._learn(sets).shape[1]
        shapes = [(d, h), (h, h), (h, h), (h, len(self.classes_))]
        layers = [rng.standard_normal(shape) * np.sqrt(2 / shape[0]) for shape in shapes]
        weights = [p.astype(np.float32) for W in layers for p in (W, np.zeros(W.shape[1]))]
        held, train = np.split(rng.permutation(len(sets)), [len(sets) // 10])
        check = self._tokens([sets[i] for i in held])
        mean, square = [[np.zeros_like(p) for p in weights] for _ in range(2)]
        best, steps = (np.inf, weights, 0), 0
        for epoch in range(self.epochs):
            for chosen in np.split(rng.permutation(train), np.arange(self.batch, len(train), self.batch)):
                steps += 1
                slopes = gradients(weights, *self._tokens([sets[i] for i in chosen]), labels[chosen])
                for k, slope in enumerate(slopes):
                    total = slope + self.decay * weights[k]
                    mean[k] = 0.9 * mean[k] + 0.1 * total
                    square[k] = 0.999 * square[k] + 0.001 * total**2
                    size = np.sqrt(square[k] / (1 - 0.999**steps)) + 1e-8
                    weights[k] = weights[k] - (self.step / (1 - 0.9**steps) * mean[k] / size).astype(np.float32)
            loss = -np.log(chances(outputs(weights, *check)[-1])[np.arange(len(held)), labels[held]] + 1e-12).mean()
            if loss < best[0]:
                best = (loss, list(weights), epoch)
            elif epoch > best[2] + self.patience:
                break
        self.loss_, self.weights_, _ = best
        return self

    def predict(self, sets):
        return self.classes_[outputs(self.weights_, *self._tokens(sets))[-1].argmax(1)]


class ByHeldOutLoss(ClassifierMixin, BaseEstimator):
    """Of four `DeepSets`, tokens scaled or not and two weight decays, the one of smallest loss on its held-out tenth."""

    def __init__(self, epochs=300):
        self.epochs = epochs

    def fit(self, sets, labels):
        models = [
            DeepSets(epochs=self.epochs, scaled=scaled, decay=decay)
            for scaled in (True, False)
            for decay in (1e-4, 1e-2)
        ]
        self.model_ = min((model.fit(sets, labels) for model in models), key=lambda model: model.loss_)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, sets):
        return self.model_.predict(sets)


def outputs(weights, tokens, counts):
    """Return both layers of phi, their mean over each set, the layer of rho, and the logits."""
    V, a, W, b, R, c, U, e = weights
    first = np.maximum(tokens @ V + a, 0)
    second = np.maximum(first @ W + b, 0)
    mean = mean_of(second, counts)
    third = np.maximum(mean @ R + c, 0)
    return first, second, mean, third, third @ U + e


def chances(logits):
    found = np.exp(logits - logits.max(1, keepdims=True))
    return found / found.sum(1, keepdims=True)


def gradients(weights, tokens, counts, labels):
    """Return the slopes of the mean cross-entropy in the weights, by the chain rule from the last layer to the first."""
    _, _, W, _, R, _, U, _ = weights
    first, second, mean, third, logits = outputs(weights, tokens, counts)
    at_logits = (chances(logits) - np.eye(logits.shape[1], dtype=np.float32)[labels]) / len(labels)
    at_third = at_logits @ U.T * (third > 0)
    at_mean = at_third @ R.T / counts[:, None].astype(np.float32)
    at_second = np.repeat(at_mean, counts, axis=0) * (second > 0)
    at_first = at_second @ W.T * (first > 0)
    pairs = ((tokens, at_first), (first, at_second), (mean, at_third), (third, at_logits))
    return [slope for x, at in pairs for slope in (x.T @ at, at.sum(0))]
