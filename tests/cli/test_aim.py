"""`attlas predict softmax | linear | hardmax`: points, ranges, pictures, and what is refused."""

import csv
import io
import json

import pytest

from attlas import aim
from attlas.aim import roots

KEYS = ["alpha", "rho", "tokens", "mse", "explained", "output_mse", "threshold", "status"]


def test_a_point(attlas_here, tmp_path):
    done = attlas_here("predict", "softmax", "--tokens", 2, "--rho", 0.5, "--alpha", 0.1, "--json")
    (found,) = json.loads(done.stdout)
    assert list(found) == KEYS
    assert found["mse"] == pytest.approx(0.39219602, abs=6e-9)
    assert found["output_mse"] == pytest.approx(0.120853, abs=6e-7)
    assert found["threshold"] == 0.1875
    assert found["explained"] == pytest.approx(1 - 0.39219602 / 1.5, abs=6e-9)
    assert "mse        0.392196" in attlas_here("predict", "softmax").stdout
    assert not list(tmp_path.iterdir())


def test_other_channels(attlas_here):
    (linear,) = json.loads(attlas_here("predict", "linear", "--noise", 0.25, "--alpha", 0.2, "--json").stdout)
    assert linear["mse"] == pytest.approx(0.51784964, abs=6e-9)
    assert linear["threshold"] is None
    (hardmax,) = json.loads(attlas_here("predict", "hardmax", "--alpha", 0.25, "--json").stdout)
    assert hardmax["mse"] == pytest.approx(0.44010521, abs=1e-8)
    assert hardmax["output_mse"] == pytest.approx(0.500459, abs=6e-7)


def test_ranges(attlas_here, tmp_path):
    done = attlas_here(
        "predict", "softmax", "--alpha", "0.01:0.25:5", "--rho", "0.5:1:2", "--csv", "--plot", "curve.png"
    )
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 10
    for row in rows:
        expected = aim.state_evolution(aim.Softmax(2), float(row["alpha"]), float(row["rho"])).value
        assert float(row["mse"]) == pytest.approx(expected, abs=1e-10)
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert len(json.loads(attlas_here("predict", "softmax", "--tokens", "2:4:3", "--json").stdout)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["softmax", "--rho", "0"], "rho must be"),
        (["softmax", "--alpha", "-1"], "alpha must be"),
        (["softmax", "--alpha", "nan"], "not a finite number"),
        (["softmax", "--alpha", "0.1:0.2"], "a range is START:STOP:COUNT"),
        (["softmax", "--alpha", "many"], "give a number or a range"),
        (["softmax", "--tokens", "1"], "tokens must be an integer of at least 2"),
        (["softmax", "--beta", "0"], "beta must be"),
        (["linear", "--noise", "-1"], "noise must be"),
        (["hardmax", "--tokens", "2.5"], "tokens must be an integer"),
        (["softmax", "--plot", "no/such/file.png"], "there is no folder"),
        (["softmax", "--plot", "file.xyz"], "file.xyz"),
        (["sigmoid"], "No such command"),
    ],
)
def test_bad_input(attlas_here, tmp_path, arguments, message):
    done = attlas_here("predict", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_status_is_read_off_the_equation(attlas_here, monkeypatch):
    """A root that is wrong by a thousandth does not pass for a solution."""
    right = roots.largest
    assert json.loads(attlas_here("predict", "softmax", "--json").stdout)[0]["status"] == "converged"
    monkeypatch.setattr(roots, "largest", lambda *given: 1.001 * right(*given))
    assert json.loads(attlas_here("predict", "softmax", "--json").stdout)[0]["status"] == "out of steps"


def test_phase_diagrams(attlas_here, tmp_path):
    over_width = attlas_here(
        "predict", "softmax", "--alpha", "0.01:0.3:20", "--rho", "0.1:2:20", "--diagram", "widths.png"
    )
    assert over_width.stdout == ""
    assert "drawn to widths.png" in over_width.stderr
    attlas_here("predict", "softmax", "--alpha", "0.01:0.3:20", "--tokens", "2,3,5", "--diagram", "lengths.png")
    assert {path.name for path in tmp_path.iterdir()} == {"widths.png", "lengths.png"}
    refused = attlas_here("predict", "softmax", "--diagram", "point.png")
    assert refused.returncode == 2
    assert "--diagram needs two ranges" in refused.stderr
