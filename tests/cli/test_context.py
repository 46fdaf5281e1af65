"""`attlas predict context`: points, ranges, pictures, and what is refused."""

import csv
import io
import json
from math import inf

import pytest

from attlas import context

KEYS = ["alpha", "kappa", "tau", "ridge", "noise", "icl", "idg", "training", "effective", "bayes", "status"]


def test_a_point(attlas_here, tmp_path):
    command = ("predict", "context", "--alpha", 2, "--kappa", 0.5, "--tau", 2, "--ridge", 0, "--noise", 0.1)
    (found,) = json.loads(attlas_here(*command, "--json").stdout)
    assert list(found) == KEYS
    assert found["icl"] == pytest.approx(1.338451293643, abs=6e-13)
    assert found["idg"] == pytest.approx(0.586280456295, abs=6e-13)
    assert found["bayes"] == pytest.approx(0.184429, abs=6e-7)
    assert found["status"] == "converged"
    assert "icl        1.33845" in attlas_here(*command).stdout
    (longer,) = json.loads(attlas_here("predict", "context", "--kappa", 2, "--test-alpha", 20, "--json").stdout)
    assert longer["icl"] == pytest.approx(0.629672344291, abs=6e-13)
    assert longer["bayes"] < found["bayes"]
    assert not list(tmp_path.iterdir())


def test_infinite_ratios_and_the_best_ridge(attlas_here):
    (found,) = json.loads(
        attlas_here("predict", "context", "--kappa", "inf", "--tau", "inf", "--ridge", 0, "--json").stdout
    )
    assert found["kappa"] == found["tau"] == "inf"
    assert found["icl"] == pytest.approx(0.454839, abs=6e-7)
    (best,) = json.loads(
        attlas_here("predict", "context", "--kappa", 2, "--tau", 1, "--ridge", "best", "--json").stdout
    )
    assert best["ridge"] == pytest.approx(1.17829, abs=6e-6)
    assert best["icl"] == pytest.approx(0.847891, abs=6e-7)


def test_ranges(attlas_here, tmp_path):
    ranges = ("--kappa", "0.5,2", "--tau", "0.5:1.5:3")
    done = attlas_here("predict", "context", *ranges, "--ridge", 0, "--csv", "--plot", "curve.png")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 6
    for row in rows:
        if float(row["tau"]) == 1:  # the peak of a curve is infinite, a single point is refused
            assert float(row["icl"]) == inf
        else:
            expected = context.theory(2, float(row["kappa"]), float(row["tau"]), 0, 0.1)
            assert float(row["icl"]) == pytest.approx(expected.icl, rel=1e-12)
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert attlas_here("predict", "context", *ranges).stdout.count("idg=") == 6


def test_phase_diagrams(attlas_here, tmp_path):
    done = attlas_here("predict", "context", "--kappa", "0.1:4:12", "--tau", "0.1:4:12", "--diagram", "tasks.png")
    assert done.stdout == ""
    assert "drawn to tasks.png" in done.stderr
    attlas_here("predict", "context", "--alpha", "0.5:9:8", "--kappa", "0.1:4:8", "--diagram", "lengths.png")
    assert {path.name for path in tmp_path.iterdir()} == {"tasks.png", "lengths.png"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tau", "1", "--ridge", "0"], "tau = 1 without ridge is the interpolation point"),
        (["--ridge", "-1"], "ridge must be"),
        (["--ridge", "good"], "--ridge: give a number or a range"),
        (["--alpha", "0"], "alpha must be"),
        (["--alpha", "inf"], "not a finite number"),
        (["--kappa", "nan"], "not a finite number"),
        (["--noise", "-0.5"], "noise must be"),
        (["--diagram", "a.png"], "--diagram needs two ranges"),
        (["--kappa", "0.5:2:3", "--diagram", "a.png"], "--diagram needs two ranges"),
        (["--plot", "a.png"], "--plot needs a range"),
        (["--json", "--csv"], "exclude each other"),
    ],
)
def test_bad_input(attlas_here, tmp_path, arguments, message):
    done = attlas_here("predict", "context", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_contexts_without_end_at_test_time(attlas_here):
    (found,) = json.loads(attlas_here("predict", "context", "--test-alpha", "inf", "--noise", 0.1, "--json").stdout)
    assert found["bayes"] == 0.1
    assert found["icl"] == context.theory(2, 1, 2, 0.05, 0.1, test_alpha=inf).icl


def test_a_curve_of_nothing_but_infinite_errors_is_drawn(attlas_here, tmp_path):
    command = ("predict", "context", "--ridge", 0, "--tau", 1, "--kappa", "1:2:3", "--plot", "f.png")
    assert attlas_here(*command).returncode == 0
