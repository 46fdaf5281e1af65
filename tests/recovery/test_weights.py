"""The conventions of PyTorch and GPT-2, against numbers that torch computed (make_torch_layers.py)."""

from pathlib import Path

import numpy as np
import pytest

from attlas import layers
from attlas.errors import InputError
from attlas.recovery import Layer, layer_from_gpt2, layer_from_weights

STORED = dict(np.load(Path(__file__).parent / "assets" / "torch_layers.npz"))


def stored(name):
    return {key.partition("/")[2]: value for key, value in STORED.items() if key.startswith(f"{name}/")}


def weights(case):
    fused = case.get("in_proj_weight")
    q, k, v = np.split(fused, 3) if fused is not None else (case[f"{each}_proj_weight"] for each in "qkv")
    biases = np.split(case["in_proj_bias"], 3) if "in_proj_bias" in case else (None,) * 3
    return q, k, v, case["out_proj.weight"], *biases, case.get("out_proj.bias")


@pytest.mark.parametrize("name", ["plain", "biases", "keys"])
def test_outputs_are_those_of_torch(name):
    case = stored(name)
    layer = Layer.from_weights(*weights(case), heads=2)
    keys = None if name != "keys" else case["Z"]
    np.testing.assert_allclose(layer(case["X"], keys=keys), case["Y"], atol=1e-13)
    np.testing.assert_allclose(layer(case["X"], keys, case["padding"]), case["Y_padded"], atol=1e-13)
    assert layer.rank == 3
    if name != "keys":
        causal = Layer.from_weights(*weights(case), heads=2, causal=True)
        np.testing.assert_allclose(causal(case["X"]), case["Y_causal"], atol=1e-13)


def test_fused_weights_of_gpt2_behind_its_layer_norm():
    case = stored("gpt2")
    layer = Layer.from_gpt2(
        *(case[f"c_{name}"] for name in ("attn_weight", "attn_bias", "proj_weight", "proj_bias")), 3
    )
    tokens = layers.layer_norm(case["X"], case["ln_weight"], case["ln_bias"])
    assert layer.causal
    np.testing.assert_allclose(layer(tokens), case["Y"], atol=1e-13)


def test_transposed_weights_are_the_other_convention():
    q, k, v, o, bq, bk, bv, bo = weights(stored("biases"))
    one = layer_from_weights(q, k, v, o, bq, bk, bv, bo, heads=3)
    other = layer_from_weights(q.T, k.T, v.T, o.T, bq, bk, bv, bo, heads=3, convention="gpt2")
    for name in ("Theta", "W", "key_bias", "output_bias"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-13)


def test_a_key_bias_of_the_model_changes_nothing():
    q, k, v, o, bq, bk, bv, bo = weights(stored("biases"))
    one, other = (layer_from_weights(q, k, v, o, bq, each, bv, bo, heads=2) for each in (bk, 100 * bk))
    np.testing.assert_array_equal(one.key_bias, other.key_bias)


def test_factors_are_those_of_theta_and_its_bias():
    layer = Layer.from_weights(*weights(stored("biases")), heads=2)
    Q, K = layer.factors()
    assert Q.shape == (2, 7, 3)
    assert K.shape == (2, 6, 3)
    np.testing.assert_allclose(Q @ K.transpose(0, 2, 1), layer.stacked(), atol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 4}, "multiple of heads = 4"),
        ({"Wk": np.zeros((6, 5))}, "keys have dimension 5 and values 6"),
        ({"Wo": np.zeros((6, 5))}, "share the width"),
        ({"bq": np.zeros(5)}, "bq"),
        ({"bk": np.zeros(5)}, "bk"),
        ({"convention": "jax"}, "convention"),
    ],
)
def test_bad_weights_are_one_sentence(change, message):
    given = {name: np.eye(6) for name in ("Wq", "Wk", "Wv", "Wo")} | {"heads": 2} | change
    with pytest.raises(InputError, match=message):
        layer_from_weights(**given)
    with pytest.raises(InputError, match="queries, keys and values"):
        layer_from_gpt2(np.zeros((4, 8)), None, np.eye(4), None, 2)
