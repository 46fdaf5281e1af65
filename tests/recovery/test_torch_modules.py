"""Layers from torch modules and back, where torch is installed; the conventions are tested everywhere (test_weights.py)."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.recovery import (
    Layer,
    difference,
    from_torch,
    learn_from_queries,
    parameter_error,
    planted_layer,
    to_torch,
)

torch = pytest.importorskip("torch", reason="torch is an extra: pip install 'attlas[torch]'")


def module_of(precision="float64", **options):
    torch.manual_seed(1)
    module = torch.nn.MultiheadAttention(8, 2, dtype=getattr(torch, precision), **options).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.5)
    return module


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"batch_first": True}])
@pytest.mark.parametrize(("precision", "exact"), [("float64", 1e-13), ("float32", 1e-5)])
def test_a_layer_computes_what_its_module_does(options, precision, exact):
    module = module_of(precision, **options)
    X = torch.randn(5, 4, 8, dtype=getattr(torch, precision))
    asked = X if options.get("batch_first") else X.transpose(0, 1)
    later = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    for mask in (None, later):
        Y = module(asked, asked, asked, attn_mask=mask)[0].detach()
        expected = (Y if options.get("batch_first") else Y.transpose(0, 1)).double().numpy()
        found = from_torch(module, causal=mask is not None)(X.double().numpy())
        np.testing.assert_allclose(found, expected, atol=exact)


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 3, "vdim": 3}])
def test_there_and_back_is_the_same(options):
    layer = from_torch(module_of(**options))
    assert parameter_error(from_torch(layer.to_torch()), layer) < 1e-14
    assert 0 < difference(from_torch(layer.to_torch(dtype="float32")), layer) < 1e-6
    assert layer.to_torch().in_proj_bias is None or "bias" not in options


def test_heads_that_do_not_divide_the_width_are_joined_by_silent_ones():
    Q, K = np.random.default_rng(0).standard_normal((2, 3, 8, 2))
    layer = Layer(Q @ K.transpose(0, 2, 1), Q @ K.transpose(0, 2, 1))
    module = to_torch(layer)
    assert module.num_heads == 4
    back = from_torch(module)
    assert back.canonical().heads == 3
    assert difference(back, layer) < 1e-13


def test_full_rank_needs_a_wider_module_and_says_so():
    layer = Layer(*planted_layer(2, 4, 0), output_bias=np.arange(4.0))
    with pytest.raises(InputError, match="embed_dim=8 fits, with tokens padded"):
        to_torch(layer)
    X = np.random.default_rng(0).standard_normal((3, 4, 4))
    padded = torch.tensor(np.pad(X, ((0, 0), (0, 0), (0, 4))))
    Y = to_torch(layer, embed_dim=8)(padded, padded, padded)[0].detach().numpy()
    np.testing.assert_allclose(Y[:, :, :4], layer(X), atol=1e-13)
    assert not Y[:, :, 4:].any()
    with pytest.raises(InputError, match="do not fit into embed_dim = 3"):
        to_torch(layer, embed_dim=3)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (lambda: torch.nn.TransformerEncoderLayer(8, 2), "give its .self_attn"),
        (lambda: torch.nn.MultiheadAttention(8, 2, add_bias_kv=True), "add_bias_kv"),
        (lambda: torch.nn.MultiheadAttention(8, 2, add_zero_attn=True), "add_zero_attn"),
        (lambda: torch.nn.MultiheadAttention(8, 2, kdim=3, vdim=5), "takes both from one sequence"),
        (lambda: 3, "takes a torch.nn.MultiheadAttention"),
    ],
)
def test_what_is_no_such_layer_is_one_sentence(module, message):
    with pytest.raises(InputError, match=message):
        from_torch(module())


def test_a_module_in_training_is_asked_in_evaluation_mode_and_left_as_it_was():
    module = module_of(dropout=0.2, batch_first=True).train()
    found = learn_from_queries(module, 8, heads=None, bias=True)
    assert found.certificate.met
    assert parameter_error(found, from_torch(module)) < 1e-8
    assert module.training
    assert module.out_proj.training


def test_a_module_may_return_its_attention_too():
    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.own = module_of(batch_first=True)

        def forward(self, X):
            return self.own(X, X, X)

    assert learn_from_queries(Both(), 8, heads=None, bias=True).certificate.met


@pytest.mark.parametrize(
    ("precision", "options", "message"),
    [
        ("float16", {}, "computes in float16.*module.double"),
        ("bfloat16", {}, "computes in bfloat16.*module.double"),
        ("float64", {"add_bias_kv": True}, "add_bias_kv=True appends a key"),
        ("float64", {"add_zero_attn": True}, "add_zero_attn=True appends a key"),
        ("float64", {"kdim": 3, "vdim": 3}, "tokens of another dimension"),
    ],
)
def test_a_module_that_cannot_be_asked_is_one_sentence(precision, options, message):
    with pytest.raises(InputError, match=message):
        learn_from_queries(module_of(precision, **options), 8, heads=None, bias=True)
