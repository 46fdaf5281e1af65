"""`attlas predict positional`: points, ranges, pictures, and what is refused."""

import csv
import io
import json

import numpy as np
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
    assert "loss_positional=nan (none: no encoding)" in lines[0]


def test_what_to_beware_of_is_printed(attlas_here):
    """The published setting with few samples: meaning is a saddle, and the theory approximate."""
    published = ("--token-scale", 0.5, "--decay", 0.01, "--encoding", 1, "--tol", "1e-4")
    first, _ = attlas_here("predict", "positional", "--alpha", "0.8,1.6", *published).stdout.splitlines()
    assert "(unstable, approximate)" in first
    (found,) = json.loads(
        attlas_here("predict", "positional", "--alpha", 0.1, "--encoding", 0.3, "--tol", "1e-4", "--json").stdout
    )
    assert found["better"] == "none"
    assert found["status_positional"] == found["status_semantic"] == "none, approximate"


def test_what_is_not_solved_is_not_compared(monkeypatch):
    from attlas import positional
    from attlas.cli.positional import _rows
    from attlas.positional import curves

    real = curves.state_evolution
    monkeypatch.setattr(curves, "state_evolution", lambda *a, **k: real(*a, **k | {"max_steps": 2}))
    model = positional.Model(0.3, 3.0)
    (row,) = _rows(model, positional.curve(model, 3.0, tol=1e-4), None)
    assert row["better"] == "unknown"
    assert row["status_positional"] == "not converged (out of steps)"


def test_a_drawing_has_the_colours_of_the_page_and_dots_where_theory_is_in_doubt(monkeypatch, tmp_path):
    from attlas import positional
    from attlas.claims.positional.kit import COLOUR
    from attlas.cli import positional as command

    figures = []
    monkeypatch.setattr(command, "save", lambda figure, _target: figures.append(figure))
    model = positional.Model(0.3, 3.0)
    command._draw([(model, positional.curve(model, [1.0, 1.5, 3.0, 4.0], tol=1e-4), 2.566)], tmp_path / "a.png")
    lines = {line.get_label(): line for line in figures[0].axes[0].lines}
    for branch in ("positional", "semantic"):
        assert lines[branch].get_color() == COLOUR[branch]
    solid = lines["semantic"].get_ydata()
    dotted = next(
        line.get_ydata() for line in figures[0].axes[0].lines
        if line.get_linestyle() == ":" and line.get_color() == COLOUR["semantic"]
    )  # fmt: skip
    assert list(np.isfinite(solid)) == [False, False, True, True]  # at first a saddle, then approximate
    assert np.isfinite(dotted).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--token-scale", "60"], "computed for token_scale between 0.001 and 3"),
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
