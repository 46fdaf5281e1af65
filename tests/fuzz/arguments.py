"""Arguments for every public function, by the name of the parameter: one that is valid, cheap and small; many that are not.

A new function is fuzzed without a line here: with the defaults of its parameters, and where there are none with guesses by
their types. If a valid call needs better ones, its test is skipped with a note, until the names of its parameters are in
``VALID``; where a name means different things, write ``"function.name"``, or ``"door.function.name"`` where doors differ.
"""

import functools

import numpy as np

from attlas import aim, context, features, positional, recovery, tokens
from attlas.numerics import stream


@functools.cache
def task(noise=0.0):
    return aim.sample(aim.Linear(2, noise or 0.1), 6, 0.8, 0.5, 0)


@functools.cache
def planted():
    return recovery.Layer(*recovery.planted_layer(1, 3, 0))


@functools.cache
def planted_block():
    return recovery.planted_block(1, 3, 2, 0)


def sequences():
    return tokens.gaussian(30, 2, 3, 1)


def one(X):
    """As an oracle answers: one sequence at a time."""
    return planted()(X[None])[0, -1]


def oracle(X):
    return planted()(X)


@functools.cache
def placed():
    return positional.sample(positional.Model(0.3, 3.0), 6, 3, 0)


@functools.cache
def meant():
    return positional.sample_teacher(2, 6, 2, 0)


def samples(n=12):
    return stream(0, "fuzz").standard_normal(n)


def contexts():
    """Three contexts of five examples in four dimensions."""
    return context.draw_contexts(np.ones((3, 4)), 5, 0.1, 0)


def torch_module():
    import torch  # the functions that take one are left out where it is not installed

    return torch.nn.MultiheadAttention(4, 2)


VALID = {
    "n": lambda: 4,
    "tokens": lambda: 2,
    "d": lambda: 4,
    "seed": lambda: 0,
    "heads": lambda: 1,
    "rank": lambda: None,
    "h": lambda: np.ones((2, 2)),
    "X": lambda: task().X,
    "y": lambda: task().y,
    "Y": lambda: oracle(tokens.gaussian(30, 2, 3, 1)),
    "S": lambda: np.eye(4),
    "W": lambda: stream(0, "W").standard_normal((3, 4)),
    "V": lambda: np.ones((3, 4)),
    "channel": lambda: aim.Linear(2, 0.1),
    "alpha": lambda: 0.4,
    "rho": lambda: 0.5,
    "decay": lambda: 0.1,
    "noise": lambda: 0.1,
    "beta": lambda: 1.0,
    "delta": lambda: 0.5,
    "x": lambda: samples(),
    "level": lambda: 0.99,
    "samples": lambda: samples(),
    "hits": lambda: 3,
    "trials": lambda: 10,
    "steps": lambda: 5,
    "start": lambda: 1.0,
    "R": lambda: np.eye(4),
    "eigenvalues": lambda: np.linspace(-1.0, 2.0, 4),
    "layer": planted,
    "fisher.X": lambda: np.random.default_rng(0).standard_normal((20, 2, 3)),
    "information.X": lambda: np.random.default_rng(0).standard_normal((20, 2, 3)),
    "design.X": lambda: np.random.default_rng(0).standard_normal((20, 2, 3)),
    "guess": planted,
    "first": planted,
    "second": planted,
    "found": planted,
    "truth": planted,
    "oracle": lambda: oracle,
    "a": lambda: np.ones(3),
    "bias": lambda: 0.0,
    "n_heads": lambda: 3,
    "n_neurons": lambda: 3,
    "sizes": lambda: [10, 20, 40],
    "max_steps": lambda: 5,
    "max_starts": lambda: 2,
    "max_seconds": lambda: 2.0,
    "tol": lambda: 1e-6,
    "throw": lambda: False,
    "name": lambda: "fuzz",
    "scale": lambda: 1.0,
    "d_out": lambda: None,
    "k": lambda: 2,
    "sharpness": lambda: 1.0,
    "progress": lambda: None,
    "theta": lambda: 0.5,
    "target": lambda: features.targets.Query(np.ones(4)),
    "costs": lambda: [20.0, 40.0, 80.0],
    "errors": lambda: [0.5, 0.2, 0.1],
    "model": lambda: features.RandomAttentionRegressor(n_heads=5),
    "low": lambda: 10,
    "high": lambda: 40,
    "Theta": lambda: np.ones((1, 6, 6)),
    "neurons": lambda: np.ones((3, 13)),
    "b": lambda: np.eye(3)[0],
    "grid": lambda: "ratios",
    "phase_diagram.alpha": lambda: [0.2, 0.4],
    "trained_diagram.alpha": lambda: [0.2, 0.4],
    "phase_diagram.rho": lambda: [0.5, 1.0],
    "minimise.start": lambda: None,
    "descend.rank": lambda: 2,
    "message_passing.S": lambda: task().S,
    "exponent.d": lambda: [4, 8, 16],
    "deep_attention.S": lambda: np.eye(6)[None],
    "attention_indices.S": lambda: np.eye(6),
    "multi_head_attention.W": lambda: np.ones((1, 6, 2)),
    "random_feature_attention.heads": lambda: np.ones((3, 7, 7)),
    "pooled_feature_attention.heads": lambda: np.ones((3, 7, 7)),
    "codes": lambda: 1,
    "frame": lambda: {"set": ["a", "b", "a"], "x": [1.0, 2.0, 3.0], "y": [0, 1, 2]},
    "set_id": lambda: "set",
    "sets_from_long.tokens": lambda: ["x", "y"],
    "order": lambda: "y",
    "fit_line.y": lambda: 2 * samples() + 1,
    "rank_correlation.y": lambda: samples() ** 3,
    "learn.X": sequences,
    "sculpt.X": sequences,
    "on_slice_accuracy.X": lambda: tokens.boolean(10, 2, 3, 1),
    "learning_curve.X": lambda: sequences(),
    "learning_curve.Y": lambda: np.ones(30),
    "X_test": lambda: sequences(),
    "trained_diagram.decay": lambda: [0.1, 0.2],
    "learning_curve.sizes": lambda: [10, 20, 30],
    "copies.oracle": lambda: one,
    "Y_test": lambda: np.ones(30),
    **{
        f"positional.{name}.model": lambda: positional.Model(0.3, 3.0)
        for name in (
            *("baseline", "bayes_error", "crossing", "curve", "sample", "state_evolution", "switch", "tabulated"),
        )
    },
    **{f"positional.{name}.task": placed for name in ("minimise", "sharpness")},
    **{
        f"positional.{name}.tol": lambda: 1e-4
        for name in ("crossing", "curve", "state_evolution", "switch", "tabulated")
    },
    **{f"positional.{name}.alpha": lambda: 3.0 for name in ("curve", "sample", "state_evolution", "tabulated")},
    **{f"positional.{name}.rank": lambda: 1 for name in ("read_gram", "sample_teacher", "spectral", "weak_recovery")},
    **{f"positional.{name}.attention": lambda: meant().attention for name in ("read_gram", "read_indices", "spectral")},
    **{f"positional.{name}.X": lambda: meant().X for name in ("message_passing", "read_attention", "spectral")},
    **{f"positional.{name}.y": lambda: meant().y for name in ("message_passing", "read_attention")},
    **{f"positional.{name}.branch": lambda: "semantic" for name in ("state_evolution", "tabulated")},
    "positional.bayes_alpha.V": lambda: 0.5,
    "positional.bayes_error.alpha": lambda: 0.3,
    "positional.message_passing.start": lambda: None,
    "positional.message_passing.z": lambda: None,
    "positional.message_passing.Q": lambda: meant().W[:, 0],
    "positional.minimise.start": lambda: "random",
    "positional.minimise.method": lambda: "lbfgs",
    "positional.minimise.max_steps": lambda: 50,
    "positional.minimise.step": lambda: 0.05,
    "positional.proximal_map.V": lambda: 1.0,
    "positional.sample.values": lambda: "plain",
    "positional.sharpness.Q": lambda: placed().Q,
    "positional.state_evolution.max_steps": lambda: 30,
    "positional.state_evolution.start": lambda: None,
    "t1": lambda: 0.6,
    "t2": lambda: 0.6,
    "token_scale": lambda: 1.0,
    "w_r": lambda: 0.1,
    "w_s": lambda: 0.3,
    "learn_from_queries.oracle": lambda: one,
    "learn_from_queries.d": lambda: 3,
    "learn_block_from_queries.oracle": planted_block,
    "learn_block_from_queries.d": lambda: 3,
    "hidden": lambda: 3,
    "learn_block_from_queries.noise": lambda: 0.0,
    "canonical_block.weights": planted_block,
    "block_error.found": lambda: recovery.canonical_block(planted_block()),
    "block_error.truth": lambda: recovery.canonical_block(planted_block()),
    "BlockWeights.Theta": lambda: np.ones((1, 3, 3)),
    "BlockWeights.W": lambda: np.ones((1, 3, 3)),
    "BlockWeights.A": lambda: np.ones((2, 3)),
    "BlockWeights.a0": lambda: np.ones(2),
    "BlockWeights.B": lambda: np.ones((5, 2)),
    "BlockWeights.b0": lambda: np.ones(5),
    "transformer_block.X": lambda: np.ones((2, 2, 6)),
    "transformer_block.W": lambda: np.ones((1, 6, 6)),
    "transformer_block.A": lambda: np.ones((2, 6)),
    "transformer_block.a0": lambda: np.ones(2),
    "transformer_block.B": lambda: np.ones((5, 2)),
    "transformer_block.b0": lambda: np.ones(5),
    "tau": lambda: 0.5,
    "kappa": lambda: 0.5,
    "length": lambda: 5,
    "layers": lambda: 2,
    "strengths": lambda: [0.5, 1.0],
    "eta": lambda: 0.3,
    "times": lambda: [0.0, 1.0, 2.0],
    "estimates": lambda: np.ones((3, 4)),
    "tasks": lambda: np.ones((3, 4)),
    "pool": lambda: 200,
    "finite_size_of.tasks": lambda: context.draw_tasks(6, 2.0, 1.0, 0.1, 0),
    "population.tasks": lambda: context.draw_tasks(6, 2.0, 1.0, 0.1, 0),
    "fit.task": lambda: context.sample(6, 2.0, 1.0, 0.5, 0.1, 0),
    "discrete_bayes.X": lambda: contexts()[0],
    "discrete_bayes.y": lambda: contexts()[1],
    "ridge_estimate.X": lambda: contexts()[0],
    "ridge_estimate.y": lambda: contexts()[1],
    "fit_softmax.X": lambda: contexts()[0],
    "fit_softmax.y": lambda: contexts()[1],
    "fit_softmax.query": lambda: np.ones((3, 4)),
    "fit_softmax.target": lambda: np.arange(3.0),
    "half_time.start": lambda: 0.01,
    "logistic_error.start": lambda: 0.01,
    "features.theory.key_samples": lambda: 30,
    **{
        f"{name}.{key}": make
        for name in (
            "ConstrainedAttentionRegressor",
            "RandomAttentionClassifier",
            "RandomAttentionRegressor",
            "RandomAttentionFeatures",
            "RandomMLPFeatures",
            "StandardTokens",
        )
        for key, make in {
            "n_heads": lambda: 5,
            "random_state": lambda: 0,
            "X": lambda: tokens.gaussian(8, 2, 3, 1),
            "y": lambda: np.array([0, 1] * 4),
        }.items()
    },
    **{f"{method}.X": lambda: tokens.gaussian(8, 2, 3, 1) for method in ("predict", "predict_proba", "transform")},
    "ConstrainedAttentionRegressor.max_iter": lambda: 50,
    "Custom.function": lambda: lambda h: h,
    "Custom.tokens": lambda: 1,
    "Custom.samples": lambda: 100,
    "Deep.samples": lambda: 64,
    "Deep.accuracy": lambda: 0.1,
    "SoftmaxLayer.K": lambda: np.ones((1, 4, 5)),
    "SoftmaxLayer.v": lambda: np.ones((1, 5)),
    "Sets.tokens": lambda: stream(0, "sets").standard_normal((6, 3)),
    "Sets.offsets": lambda: np.array([0, 2, 3, 6]),
    "TargetData.names": lambda: ["keys 1", "correlation 1"],
    "TargetData.keys": lambda: 2,
    "TargetData.n_test": lambda: 8,
    "features.Theory.keys": lambda: 2,
    "features.Theory.key_samples": lambda: 30,
    "Model.mixture": lambda: 0.3,
    "Model.encoding": lambda: 3.0,
    **{f"layer_from_weights.{name}": lambda: np.eye(4) for name in ("Wq", "Wk", "Wv", "Wo")},
    "c_attn_weight": lambda: np.ones((4, 12)),
    "c_attn_bias": lambda: np.ones(12),
    "c_proj_weight": lambda: np.eye(4),
    "c_proj_bias": lambda: np.ones(4),
    "layer_norm.bias": lambda: None,
    "learn.bias": lambda: False,
    "learn_from_queries.bias": lambda: False,
    "from_torch.module": torch_module,
    "Layer.Theta": lambda: np.ones((1, 3, 3)),
    "Layer.W": lambda: np.ones((1, 3, 3)),
}

HOSTILE = [
    float("nan"), float("inf"), -float("inf"), -1, 0, -0.5, 0.5, 1.5, 1e-320, 1e-200, 1e-12, 1e200, 10**30, 2**63, 10**400,
    -(10**400), True, None, "x", b"x", object(), 1j, [], [[1.0], [1.0, 2.0]], [float("nan")], np.nan * np.ones((2, 2)),
    np.full((2, 2), np.inf), np.ma.masked_array([1.0, 2.0], [True, False]), np.ma.masked, np.array([None, 1.0]),
    np.zeros((2, 2, 2, 2)), np.zeros((0, 2)), np.array(["a"]), np.zeros(3), np.full(4, 1e300), {}, lambda *_: None,
    np.float32(0.5), np.int8(3), np.array(0.5), [10**400], [1e-320, 0.5],
]  # fmt: skip
