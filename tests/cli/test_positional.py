"""`attlas predict positional`: points, ranges, pictures, and what is refused."""

import csv
import io
import json

import pytest


def test_positional(attlas_here, tmp_path):
    (found,) = json.loads(attlas_here("predict", "positional", "--alpha", 3, "--tol", "1e-4", "--json").stdout)
    assert found["loss_positional"] == pytest.approx(0.11665, rel=2e-4)
    assert found["loss_semantic"] == pytest.approx(0.10715, rel=2e-4)
    assert found["theta_semantic"] == pytest.approx(0.49419, rel=2e-4)
    assert found["alpha_c"] == pytest.approx(2.5659, abs=1e-3)
    assert found["better"] == "semantic"
    assert found["status_positional"] == "exact"
    done = attlas_here(
        "predict", "positional", "--alpha", "2:3:2", "--encoding", "0,3", "--tol", "1e-4", "--csv", "--plot", "c.png"
    )
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["better"] for row in rows] == ["semantic", "semantic", "positional", "semantic"]
    assert rows[0]["status_positional"] == "none: no encoding"
    assert rows[0]["alpha_c"] == rows[0]["loss_positional"] == ""
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    lines = attlas_here("predict", "positional", "--alpha", "2,3", "--encoding", 0, "--tol", "1e-4").stdout.splitlines()
    assert len(lines) == 2
    assert "loss_positional=nan" in lines[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mixture", "1"], "mixture must be in [0, 1)"),
        (["--alpha", "0"], "alpha must be"),
        (["--alpha", "3", "--plot", "a.png"], "--plot draws curves over alpha"),
        (["--tol", "1e-12"], "tol must be at least"),
        (["--encoding", "strong"], "give a number or a range"),
    ],
)
def test_bad_input_to_positional(attlas_here, arguments, message):
    done = attlas_here("predict", "positional", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
