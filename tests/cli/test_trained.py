"""`attlas predict trained`: points, ranges, pictures, and what is refused."""

import csv
import io
import json

import pytest

from attlas import aim


def test_trained(attlas_here, tmp_path):
    command = ("predict", "trained", "--channel", "softmax", "--tokens", 2, "--rho", 0.5, "--alpha", 0.1)
    (found,) = json.loads(attlas_here(*command, "--decay", 0.01, "--json").stdout)
    assert found["mse"] == pytest.approx(0.5373, abs=5e-5)
    assert found["rank"] == pytest.approx(0.394, abs=5e-4)
    assert found["bayes"] == pytest.approx(0.39219602, abs=6e-9)
    ranges = ("--alpha", "0.05:0.2:3", "--decay", "0.01:0.3:2")
    done = attlas_here("predict", "trained", *ranges, "--csv", "--plot", "curves.png", "--diagram", "diagram.png")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 6
    for row in rows:
        expected = aim.trained(aim.Softmax(2), float(row["alpha"]), 0.5, float(row["decay"]))
        assert float(row["mse"]) == pytest.approx(expected.value, rel=1e-8)
    for name in ("curves.png", "diagram.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--decay", "-0.1"], "decay must be"),
        (["--channel", "hardmax"], "derived for no other"),
        (["--noise", "0.1"], "softmax outputs have none"),
        (["--rho", "0.1:1:3", "--diagram", "a.png"], "give one --tokens and one --rho"),
        (["--json", "--csv"], "exclude each other"),
    ],
)
def test_bad_input_to_trained(attlas_here, arguments, message):
    done = attlas_here("predict", "trained", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
