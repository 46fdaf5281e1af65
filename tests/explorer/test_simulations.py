"""What the store holds of a door is what its claims make series of."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from attlas.claims import Series, find
from attlas.claims.aim import state_evolution
from attlas.claims.learners import LEARNERS
from attlas.claims.series import gather
from attlas.explorer import simulations
from attlas.explorer.pages.aim import PAGE
from attlas.explorer.plotting import SYMBOLS, simulated
from attlas.explorer.simulations import Stored
from attlas.lab import run
from attlas.store import Store

SETTINGS = ("channel", "tokens", "noise", "rho", "decay", "d")


def errors_of_message_passing(measurements):
    rows = [
        ("amp", {"channel": m.point.channel, "tokens": m.point.tokens, "rho": m.point.rho, "d": m.point.d},
         m.point.alpha, m.result["error"], None)
        for m in measurements
    ]  # fmt: skip
    return gather(rows, "alpha", "mse")


@pytest.fixture
def claims(monkeypatch):
    """Let one claim have series, and no other, whatever they have."""

    def found(wanted):
        one = {"aim.state-evolution": errors_of_message_passing}
        return [replace(claim, series=one.get(claim.id)) for claim in find(wanted)]

    monkeypatch.setattr(simulations, "find", found)


def test_simulations_of_the_store_are_means_over_seeds(tmp_path, claims) -> None:
    store = tmp_path / "attlas.db"
    grid = {"d": [20], "channel": ["softmax"], "tokens": [2], "alpha": [0.1], "noise": [0.0], "rho": [0.5]}
    run(["aim.state-evolution"], store=store, grid=grid, seeds=3, executor="serial")
    ((claim, found),) = simulations.stored(store, "aim", "alpha", "mse", SETTINGS)
    point = state_evolution.Point(d=20, channel="softmax", tokens=2, alpha=0.1, rho=0.5)
    own = [state_evolution.CLAIM.own_seed(seed) for seed in range(3)]
    errors = [state_evolution.measure(point, seed)["error"] for seed in own]
    assert (claim, found.name, found.x, found.seeds) == ("aim.state-evolution", "amp", (0.1,), (3,))
    assert found.mean[0] == pytest.approx(np.mean(errors), rel=1e-9)
    assert found.standard_error[0] == pytest.approx(np.std(errors, ddof=1) / np.sqrt(3), rel=1e-9)
    view = PAGE.sections[0].view({}, store)
    curve = PAGE.sections[0].plots[0]
    assert curve.draw(view)["data"][-1]["name"] == "message passing"
    row = f"message passing,0.1,{found.mean[0]!r},{found.standard_error[0]!r},3,20,aim.state-evolution"
    assert row in curve.data(view).splitlines()


def test_a_plot_is_given_only_series_that_it_knows_how_to_show(tmp_path, claims) -> None:
    store = tmp_path / "attlas.db"
    run(["aim.state-evolution"], store=store, grid={"d": [20], "alpha": [0.1]}, seeds=1, executor="serial")
    assert simulations.stored(store, "aim", "alpha", "mse", SETTINGS)
    assert simulations.stored(store, "aim", "n", "mse", SETTINGS) == []
    assert simulations.stored(store, "aim", "alpha", "overlap", SETTINGS) == []
    assert simulations.stored(store, "aim", "alpha", "mse", ("channel", "tokens", "rho")) == []  # at which d?
    assert simulations.stored(store, "trained", "alpha", "mse", SETTINGS) == []  # a door below, not above
    assert simulations.stored(store, "nobody", "alpha", "mse", SETTINGS) == []


def test_the_series_of_a_door_are_also_those_of_the_doors_below_it(tmp_path, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(simulations, "find", lambda wanted: asked.extend(wanted) or [])
    store = tmp_path / "attlas.db"
    with Store(store):
        pass
    simulations.stored(store, "aim", "alpha", "mse", SETTINGS)
    assert {name.split(".")[0] for name in asked} == {"aim", "trained"}


def test_claims_without_series_have_none(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(simulations, "find", lambda wanted: [replace(claim, series=None) for claim in find(wanted)])
    store = tmp_path / "attlas.db"
    run(["aim.state-evolution"], store=store, grid={"d": [20], "alpha": [0.1]}, seeds=1, executor="serial")
    assert simulations.stored(store, "aim", "alpha", "mse", SETTINGS) == []
    assert simulations.trouble(store, "aim") == ""


def test_without_a_store_there_are_no_simulations_and_a_bad_one_is_named(tmp_path, claims) -> None:
    assert simulations.stored(tmp_path / "none.db", "aim", "alpha", "mse", SETTINGS) == []
    assert simulations.trouble(tmp_path / "none.db", "aim") == ""
    (tmp_path / "bad.db").write_bytes(b"not a store at all" * 100)
    assert simulations.stored(tmp_path / "bad.db", "aim", "alpha", "mse", SETTINGS) == []
    assert "bad.db" in simulations.trouble(tmp_path / "bad.db", "aim")


def test_a_locked_store_does_not_hold_up_the_theory(tmp_path, monkeypatch) -> None:
    begun, unlocked = threading.Event(), threading.Event()
    one = simulations.Stored("aim.made", gather([("amp", {}, 0.1, 0.2, None)], "alpha", "mse")[0])

    def locked(store, door):
        begun.set()
        unlocked.wait(60)
        return (one,)

    monkeypatch.setattr(simulations, "_FIRST", 0.1)
    monkeypatch.setattr(simulations, "_load", locked)
    store = tmp_path / "slow.db"
    store.write_bytes(b"x")

    def stored():
        return simulations.stored(store, "aim", "alpha", "mse", SETTINGS)

    for _ in range(2):
        assert stored() == []  # answered while the store is still being read
    assert begun.wait(60)
    unlocked.set()
    end = time.monotonic() + 60
    while not stored() and time.monotonic() < end:
        time.sleep(0.01)
    assert stored() == [one]


def test_a_learner_keeps_its_colour_and_marker_whatever_the_settings() -> None:
    looks = {}
    for keys in (list(LEARNERS), list(reversed(LEARNERS)), list(LEARNERS)[3:5]):
        found = [Stored("a.claim", Series(key, {"d": 8}, "x", "y", (1.0,), (0.5,), (0.1,), (2,))) for key in keys]
        for trace in simulated(found):
            look = trace["marker"]["color"], trace["marker"]["symbol"]
            assert looks.setdefault(trace["name"], look) == look
    assert looks == {one.name: (one.colour, SYMBOLS[one.marker]) for one in LEARNERS.values()}
