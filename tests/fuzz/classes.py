"""Public classes as functions that can be fuzzed: each is constructed and then used, an estimator fitted and asked."""

import enum
import functools
import inspect

import numpy as np
from sklearn.base import BaseEstimator

from attlas import aim, context, features, positional, tokens
from attlas.numerics import Solution

NOT_MADE_BY_USERS = {  # functions return them or fill them in, from arguments that they have checked
    **dict.fromkeys(("aim.Task", "context.Sequences", "context.TaskSet"), "a sample that a function drew"),
    **dict.fromkeys(("positional.Task", "positional.TeacherTask"), "a sample that a function drew"),
    **dict.fromkeys(("aim.Entrywise", "numerics.Line", "positional.Spectral"), "an answer"),
    **dict.fromkeys(("features.Complexity", "features.OwnTheory"), "an answer"),
    **dict.fromkeys(("recovery.Body", "recovery.Certificate", "recovery.Fisher"), "an answer"),
    **dict.fromkeys(("recovery.Block", "recovery.Network"), "an answer"),
    "numerics.Event": "what a callback is told",
    "numerics.Adam": "the state of a descent",
    "positional.Objective": "the loss of a sample, within a descent",
    "aim.ChannelDefaults": "takes no arguments",
}


USES = {  # what one does with a thing that one has constructed; every public class has a line here, or is an estimator
    "aim.Custom": lambda channel: (drawn(channel), channel.information(0.5, 1.0)),
    "aim.Deep": lambda channel: drawn(channel, [0.5, 0.5]),
    "aim.Hardmax": lambda channel: drawn(channel),  # its theory takes seconds from three tokens on
    "aim.Linear": lambda channel: aim.state_evolution(channel, 0.4, 0.5, max_steps=5),
    "aim.Softmax": lambda channel: aim.state_evolution(channel, 0.4, 0.5, max_steps=5),
    "context.DeepLinear": lambda layer: layer.estimate(*context.draw_contexts(np.ones((3, 4)), 5, 0.1, 0)[:2]),
    "context.SoftmaxLayer": lambda layer: layer.predict(np.ones((2, 5, 4)), np.ones((2, 5)), np.ones((2, 4))),
    "features.Sets": lambda sets: (
        features.RandomAttentionRegressor(5, query=None, random_state=0).fit(sets, np.arange(len(sets))).predict(sets)
    ),
    "features.TargetData": lambda data: (data.Y, data.Y_test),
    "features.Theory": lambda theory: theory.curve(features.targets.Query(np.ones(4)), [4, 8], alpha=0.1),
    "positional.Model": lambda model: positional.sample(model, 6, 3, 0).targets,  # its theory takes a second
    "recovery.BlockWeights": lambda weights: weights(tokens.gaussian(1, 2, 3, 1)[0]),
    "recovery.Layer": lambda layer: layer(tokens.gaussian(5, 2, 3, 1)),
}


def drawn(channel, rho=0.5):
    return aim.sample(channel, 6, 0.8, rho, 0).y


def used(name, kind):
    """Return the functions that a public class amounts to, by name."""
    if name in NOT_MADE_BY_USERS or issubclass(kind, Solution | tuple | enum.Enum) or getattr(kind, "_is_protocol", 0):
        return {}
    if issubclass(kind, BaseEstimator):
        return _estimator(name, kind)
    if name not in USES:
        raise LookupError(f"say in tests/fuzz/classes.py what one does with a {name}, or that users do not make it")

    def construct(**arguments):
        return USES[name](kind(**arguments))

    construct.__signature__ = inspect.signature(kind)
    return {name: construct}


def _estimator(name, kind):
    asked = [method for method in ("predict", "predict_proba", "transform") if hasattr(kind, method)][-1]
    takes = inspect.signature(kind.fit).parameters

    def fitted(**options):
        data = {key: options.pop(key) for key in ("X", "y", "sample_weight") if key in options}
        made = kind(**options).fit(**data)
        return getattr(made, asked)(data["X"])

    data = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None) for key in takes if key != "self"]
    options = inspect.signature(kind).parameters.values()
    fitted.__signature__ = inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for one in options] + data)

    @functools.cache
    def ready():
        small = {key: 5 for key in ("n_heads",) if key in inspect.signature(kind).parameters}
        return kind(**small).fit(sequences(), labels())

    def ask(X):
        return getattr(ready(), asked)(X)

    return {name: fitted, f"{name}.{asked}": ask}


def sequences():
    return tokens.gaussian(8, 2, 3, 1)


def labels():
    return np.array([0, 1] * 4)
