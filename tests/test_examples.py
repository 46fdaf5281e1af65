"""The examples and the studies run as a reader would run them, without a warning, and show what they are there to show."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent


def run(folder, name, *options):
    command = [sys.executable, "-W", "error", ROOT / name, *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(page):
    """Return {question: {method: [score, score of permuted keys, largest change]}} of the tables of the digits."""
    found = {}
    for block in page.strip().split("\n\n"):
        head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
        found[head[0]] = {cells[0]: [float(cell.split(" ±")[0]) for cell in cells[1:4]] for cells in lines}
    return found


def test_digits_as_sets(tmp_path):
    found = rows_of(run(tmp_path, "studies/digits_as_sets.py", "--quick", "--figure", "digits.png"))
    assert (tmp_path / "digits.png").stat().st_size > 10_000
    assert list(found) == ["pixels", "matches"]
    for question, methods in found.items():
        layers = {name: row for name, row in methods.items() if name.startswith("attention")}
        assert len(layers) >= 2, question
        for score, permuted, change in layers.values():
            assert score == permuted  # to the digits printed
            assert change < 1e-5  # float32 features, summed in another order
        for name in ("ridge, tokens", "RBF kernel ridge, tokens"):
            score, _, change = methods[name]
            assert change > 0.05
            assert min(layers.values())[0] > score + 0.1
    assert found["pixels"]["ridge, tokens"][1] < 0.4  # rows in another order are other rows to it
    assert found["pixels"]["attention, 200 heads"][0] > 0.9


def test_learning_curves(tmp_path):
    page = run(tmp_path, "studies/learning_curves.py", "--quick", "--out", "curves.json", "--figure", "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    found = json.loads((tmp_path / "curves.json").read_text())
    errors = np.array(found["errors"])
    sizes, names, models = found["setting"]["sizes"], found["targets"], found["models"]
    assert errors.shape == (4, len(models), len(sizes), len(names)) == (4, 3, 4, 14)
    assert np.all((errors > 0) & (errors < 2))  # nothing is worse than a constant by much
    mean = {(model, name): errors[:, m, :, t].mean(0) for m, model in enumerate(models) for t, name in enumerate(names)}
    for name in ("query p2", "keys p2", "correlation p1", "rotated p1"):
        assert errors[:, models.index("RFA"), -1, names.index(name)].max() < 0.3
        assert errors[:, models.index("RFMLP"), -1, names.index(name)].min() > 0.6  # as many trained numbers
    for model in ("RFA", "BRFA"):
        assert np.all(np.diff(mean[model, "keys p2"]) < 0)  # more samples, less error
    line = next(line for line in page.splitlines() if line.startswith("keys p2") and "BRFA" in line)
    assert f"{mean['BRFA', 'keys p2'][-1]:.3f}" in line


def test_recovery_tables(tmp_path):
    page = run(tmp_path, "studies/recovery_tables.py", "--quick", "--seeds", "2", "--out", "tables.json")
    planted, parities, one, several = page.strip().split("\n\n")
    assert "2/2" in planted.splitlines()[2].split("|")[3]  # variable projection
    assert "sign" in parities
    assert one.splitlines()[2].startswith("| 5 | 30 | 30 |")
    assert several.splitlines()[2].count("2/2") == 3
    assert len(json.loads((tmp_path / "tables.json").read_text())) == 8


def test_settling(tmp_path):
    page = run(
        tmp_path, "studies/settling.py", "--quick", "--groups", "at 0.9", "rho = 0.1, away", "--out", "runs.json"
    )
    assert "| at 0.9 | all | 4 of 4 |" in page
    assert "| rho = 0.1, away | all | 3 of 3 |" in page
    assert len(json.loads((tmp_path / "runs.json").read_text())) == 7


def test_softmax_in_context(tmp_path):
    sizes = ("--quick", "--d", "4", "--sequences", "1000", "--seeds", "2", "3")
    page = run(tmp_path, "studies/softmax_in_context.py", *sizes, "--plot", "errors.png")
    assert (tmp_path / "errors.png").stat().st_size > 10_000
    lengths, _ = page.strip().split("\n\n")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lengths.splitlines()[2:]]
    over = {(row[0], row[1]): float(row[3].split("(")[0]) for row in rows}
    for alpha in ("1", "2"):
        assert over[alpha, "softmax, two heads"] < over[alpha, "softmax, one head"]


def test_phase_diagram(tmp_path):
    page = run(tmp_path, "examples/phase_diagram.py", "--quick")
    assert (tmp_path / "phases.png").stat().st_size > 10_000
    assert "above alpha = 0.1875" in page
    rows = np.array([line.split() for line in page.splitlines()[2:]], dtype=float)
    assert np.all(rows[:3, 2] > 0.9 * rows[:3, 1])  # no algorithm is better than the best, at this size within a tenth
    assert np.all(np.diff(rows[:, 2]) < 0)
    assert rows[-1, 1] == 0
    assert rows[-1, 2] < 1e-3


def test_set_regression(tmp_path):
    attention, ridge, kernel = (
        float(line.split()[-1]) for line in run(tmp_path, "examples/set_regression.py", "--quick").splitlines()[1:]
    )
    assert attention > 0.8
    assert max(ridge, kernel) < 0.3


def test_recover_a_head(tmp_path):
    one, too_few, both, error = run(tmp_path, "examples/recover_a_head.py", "--quick").splitlines()
    assert "from 30 questions (d² + d = 30)" in one
    assert "certificate not met" in too_few
    assert "certificate met" in both
    assert float(error.split()[-1]) < 1e-9


def test_position_or_meaning(tmp_path):
    switch, *minima, with_code, without = run(tmp_path, "examples/position_or_meaning.py", "--quick").splitlines()
    assert switch.endswith("2.566")
    tops = [float(line.split()[-1]) for line in minima]
    assert tops[0] > tops[1]  # the positional minimum is the sharper one
    assert "in 0 of 4 runs" in with_code
    assert "in 4 of 4 runs" in without


def test_positional_simulations(tmp_path):
    """Losses, differences and counts within five standard errors of what the study prints beside them."""
    tables = [
        [[cell.strip() for cell in line.replace("\\|", "~").strip("|").split("|")] for line in block.splitlines()[2:]]
        for block in run(tmp_path, "studies/positional_simulations.py", "--quick").strip().split("\n\n")
    ]
    minima, gaps, published, ends, steps, messages, spectra = tables
    for row in minima:
        for cell in row[3:]:
            measured, theory = cell.split(" ~ ")
            mean, error = measured.rstrip(")").split("(")
            miss = 5 * int(error) * 10.0 ** -len(mean.split(".")[1])
            assert abs(float(mean) - float(theory)) < miss + 0.05 * float(theory), row
    assert all(row[3] == "4 of 4" for row in gaps)  # meaning is lower at alpha = 3
    assert float(published[-1][-1]) > 0.2
    assert [int(cell) for cell in ends[-1][1:]] == [0, 4, 0]  # without an encoding
    assert steps[0][1:] == ["3", "0", "0"]
    assert "0 of 3 leave" in steps[-2][0]
    assert "3 of 3 leave" in steps[-1][0]
    exact = {(row[0], row[2]): row[4] for row in messages}
    assert exact["2, 0.6", "none"] == exact["1, 1.06", "q = 0.995"] == "3 of 3"
    assert exact["1, 1.06", "none"] == exact["2, 0.25", "none"] == "0 of 3"
    assert [row[:2] for row in spectra][:2] == [["1", "0.6"], ["1", "2.5"]]


def test_sharp_features(tmp_path):
    """Three draws: deviations of the size of their standard errors, and a peak where features are as many as samples."""
    page = run(tmp_path, "studies/sharp_features.py", "--quick", "--out", "deviations.json")
    found = json.loads((tmp_path / "deviations.json").read_text())
    assert [each["learner"].split()[0] for each in found["runs"]] == ["RFA", "RFA", "BRFA", "RFMLP"]
    for each in found["runs"]:
        assert np.median(np.abs(each["deviation"])) < 0.12
        assert np.median(each["error"]) < 0.1
    table = page.strip().split("\n\n")[1].splitlines()[2:]
    noise = {int(cells[1]): float(cells[2]) for cells in (line.split("|") for line in table)}
    assert max(noise, key=noise.get) == 57  # 57 heads of 7 features, 400 samples
