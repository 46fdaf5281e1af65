"""The learning curves of the page of random features are kernel ridge regression, done by hand."""

import csv
from pathlib import Path

import numpy as np
import pytest

from attlas import features, tokens
from attlas.claims import Series
from attlas.explorer.pages import features as page
from attlas.explorer.simulations import Stored
from attlas.features.ridge import GRID
from attlas.numerics import stream

(SECTION,) = page.PAGE.sections


def view(**given):
    return SECTION.view({"keys": "4", "d": "4"} | given, Path("none.db"))


def test_the_curves_of_random_features_are_kernel_ridge() -> None:
    sizes, errors = page.curves(view(target="keys 1", seed="2", model="kernel").state)["kernel"]
    X, X_test = (tokens.sphere(n, 5, 4, stream(2, name)) for n, name in ((128, "train"), (150, "test")))
    beta = stream(2, "target").standard_normal(4)
    beta /= np.linalg.norm(beta)
    y, expected = (x[:, 1:] @ beta for x in (X, X_test))
    y, expected = y.mean(1), expected.mean(1)
    n = int(sizes[-1])
    K, cross = features.attention_kernel(X[:n]), features.attention_kernel(X_test, X[:n])
    best = np.inf
    for penalty in np.array(GRID) * np.trace(features.attention_kernel(X)) / 128:
        prediction = cross @ np.linalg.solve(K + penalty * np.eye(n), y[:n])
        error = np.mean((prediction - expected) ** 2) / expected.var()
        best = min(best, abs(error - errors[-1]) / errors[-1])
    assert best < 1e-6  # one of the penalties, chosen by leave-one-out, gave it
    assert f"attention {errors[-1]:.3f} (a constant predictor scores 1)" in page.summary(
        view(target="keys 1", seed="2", model="kernel")
    )


def test_simulations_are_drawn_beside_the_model_they_belong_to(monkeypatch) -> None:
    def series(name, **settings):
        settings = {"target": "keys 1", "d": 4, "keys": 4, "bias": 0.0} | settings
        return Stored(
            "features.made", Series(name, settings, "n", "mse over variance", (8, 16), (1, 0.5), (0, 0.1), (1, 3))
        )

    known = [series("heads"), series("neurons"), series("biased", bias=2.0), series("kernel", d=8, keys=16)]
    monkeypatch.setattr(page, "stored", lambda *_: known)

    def drawn(**given):
        found = [trace for trace in page.draw(view(target="keys 1", **given))["data"] if "error_y" in trace]
        return [(trace["name"], trace["showlegend"]) for trace in found]

    assert drawn() == [("attention, finitely many heads", True), ("network, finitely many neurons", True)]
    assert drawn(model="network") == [("network, finitely many neurons", True)]
    assert drawn(model="biased", bias="2") == [
        ("biased attention, infinitely many heads", False)
    ]  # as its line is there
    rows = list(csv.DictReader(page.data(view(target="keys 1")).splitlines()))
    assert list(rows[-1].values()) == ["network, finitely many neurons", "16", "0.5", "0.1", "3", "4", "features.made"]
    assert page.summary(view(target="keys 1", d="6")).endswith("at 4 keys, d = 4; 16 keys, d = 8.")
    assert "The store" not in page.summary(view(target="keys 2"))


@pytest.mark.parametrize("model", ["kernel", "biased", "network"])
def test_a_model_is_drawn_alone_or_with_the_others(model) -> None:
    alone = page.curves(view(model=model).state)
    assert list(alone) == [model]
    assert np.array_equal(alone[model][1], page.curves(view().state)[model][1])
