"""`attlas predict features`: a point, a range, a picture, and what is refused."""

import csv
import io
import json

import pytest

from attlas.features import theory


def test_a_point(attlas_here, tmp_path):
    options = ("--d", 8, "--n", 200, "--target", "keys2", "--alpha", 0.1)
    (found,) = json.loads(attlas_here("predict", "features", *options, "--json").stdout)
    expected = theory(8, 8).curve("keys2", 200, alpha=0.1)
    for name in ("error", "mse", "alpha", "ridge", "freedom"):
        assert found[name] == pytest.approx(float(expected[name][0]))
    assert found["status"] == "converged"
    assert found["target"] == "keys2"
    assert "error      0." in attlas_here("predict", "features", *options).stdout
    assert not list(tmp_path.iterdir())


def test_ranges_and_a_picture(attlas_here, tmp_path):
    done = attlas_here(
        "predict", "features", "--target", "corr1,keys1", "--d", 6, "--n", "50:800:4", "--heads", "30,infinite",
        "--bias", "0,1", "--csv", "--plot", "f.png",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 32
    assert {row["status"] for row in rows} == {"converged"}
    assert "outside the theory: fewer heads than d^2 = 36" in done.stderr
    assert (tmp_path / "f.png").read_bytes()[:4] == b"\x89PNG"
    last = [row for row in rows if row["target"] == "corr1" and row["heads"] == "infinite" and row["n"] == "800.0"]
    assert float(last[0]["error"]) < float(last[1]["error"])  # with many samples the unbiased layer is ahead


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "nothing"], "named by its family and power"),
        (["--d", "4", "--bias", "1"], "needs d of at least 5"),
        (["--noise", "-1"], "noise must be"),
        (["--heads", "0"], "heads must be"),
        (["--heads", "many"], "give a number or 'infinite'"),
        (["--scoring", "softmax"], "couples the keys"),
        (["--alpha", "worst"], "give one positive number or 'best'"),
        (["--n", "few"], "give a number or a range"),
        (["--learner", "tree"], "learner must be"),
    ],
)
def test_bad_input(attlas_here, tmp_path, arguments, message):
    done = attlas_here("predict", "features", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
