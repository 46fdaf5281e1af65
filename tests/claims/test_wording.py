import pytest

from attlas.claims.wording import worded


@pytest.mark.parametrize(
    ("code", "prose"),
    [
        ("m=2 d=8 k=2 share of the body", "m = 2, d = 8, k = 2: share of the body"),
        ("d=10 bias=0.0 keys 2: log error", "d = 10, bias = 0, keys 2: log error"),
        ("relu bias 0 d=16 keys=16: exponent", "relu bias 0, d = 16, keys = 16: exponent"),
        ("softmax T=2 rho=1 alpha=0.08 at d = infinity", "softmax, T = 2, rho = 1, alpha = 0.08 at d = infinity"),
        ("T = 2 noise = 0.25", "T = 2, noise = 0.25"),
        ("error at alpha=0.15 decay=0.1 over the theory's", "error at alpha = 0.15, decay = 0.1 over the theory's"),
        ("H=1 d=4 residuals=1,1 share recovered", "H = 1, d = 4, residuals = 1,1: share recovered"),
        ("d=10 aligned, half: log cost", "d = 10, aligned, half: log cost"),
        ("Adam m=2 accuracy on the parity", "Adam, m = 2: accuracy on the parity"),
        ("log random_span/sculpted", "log random span/sculpted"),
    ],
)
def test_settings_of_code_become_a_list(code, prose):
    assert worded(code) == prose


@pytest.mark.parametrize(
    "text",
    ["the peak at n = d(d+1) of both", "S >= 0 alone", "for m = 1..6 (d = 4)", "d <= 4 and n != 3", "where x == 1", ""],
)
def test_prose_stays_as_it_is(text):
    assert worded(text) == text
