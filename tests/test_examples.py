"""The examples and the studies run as a reader would run them, without a warning, and show what they are there to show."""

import ast
import importlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.claims import doors

ROOT = Path(__file__).parent.parent


def run(folder, name, *options):
    command = [sys.executable, "-W", "error", ROOT / name, *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tables_of(page):
    """Return {first cell of the head: {first cell of a row: the other cells}} of the Markdown tables on a page."""
    found = {}
    for block in page.strip().split("\n\n"):
        head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
        found[head[0]] = {cells[0]: cells[1:] for cells in lines}
    return found


def test_sets(tmp_path):
    chosen = ["pixels", "docstrings", "few-shot"]
    page = tables_of(run(tmp_path, "studies/sets.py", "--quick", "--out", "sets.json", "--problems", *chosen))
    found = json.loads((tmp_path / "sets.json").read_text())
    mean = {name: {method: np.mean(row["scores"]) for method, row in rows.items()} for name, rows in found.items()}
    assert list(mean) == list(page["problem"]) == chosen
    for name, rows in mean.items():
        table = next(cells for head, cells in page.items() if head.startswith(f"{name}: "))
        assert {method: cells[0].split(" ±")[0] for method, cells in table.items()} == {
            method: f"{score:.3f}" for method, score in rows.items()
        }
        assert len([method for method in rows if method.endswith("pooled")]) == 5
    assert mean["pixels"]["attention, 300 heads"] > 0.9
    assert (
        mean["pixels"]["attention, 300 heads"] > max(mean["pixels"][m] for m in mean["pixels"] if "pooled" in m) + 0.1
    )
    assert mean["docstrings"]["attention, tuned"] > 0.3  # ten packages, as many docstrings of each
    few = mean["few-shot"]  # marks are drawn at random, so that pooled tokens say nothing about them
    assert few["attention, tuned"] > max(score for method, score in few.items() if "pooled" in method) + 0.15


def test_sets_hold_what_the_layout_holds_and_share_nothing_with_the_test_sets():
    problems = imported("set_problems")
    train, test = next(problems.PROBLEMS["half the columns"].folds(problems.QUICK))
    for one, row in zip(train.sets, train.layout, strict=True):
        again = np.full(len(row), np.nan)
        again[one[:, :-1].argmax(1)] = one[:, -1]
        np.testing.assert_array_equal(again, row)
    assert 0.4 < np.isnan(train.layout).mean() < 0.6
    for name in ("two alike", "a pair in four", "few-shot"):
        train, test = next(problems.PROBLEMS[name].folds(problems.QUICK))
        seen = {tuple(token[: problems.COMPONENTS]) for one in train.sets for token in one}
        assert not seen & {tuple(token[: problems.COMPONENTS]) for one in test.sets for token in one}, name


def test_differences_between_methods_are_paired_and_widened():
    study = imported("sets")
    ours = study.Row("attention", [0.9, 0.8, 0.7], [1.0] * 3, [0.5] * 3)
    near, far = (study.Row("on the set", [x - gap for x in ours.scores], [1.0] * 3, [0.5] * 3) for gap in (0.0, 0.1))
    near.scores[0] += 0.03
    mean, error, verdict = study.difference(ours, near)
    assert (round(mean, 6), verdict) == (-0.01, "ties")
    assert np.isclose(error, np.sqrt((1 / 3 + 0.5) * 0.0003))  # differences -0.03, 0, 0: their variance is 0.0003
    assert study.difference(ours, far)[2] == "wins"
    assert study.difference(far, ours)[2] == "loses"


def test_the_trained_network_on_sets_has_the_slopes_of_its_loss():
    rivals, rng = imported("set_rivals"), np.random.default_rng(0)
    counts, tokens, labels = np.array([3, 1, 5]), rng.standard_normal((9, 4)), np.array([0, 2, 1])
    shapes = [(4, 6), (6, 6), (6, 6), (6, 3)]
    weights = [w for shape in shapes for w in (rng.standard_normal(shape), 0.1 * rng.standard_normal(shape[1]))]

    def loss(moved):
        return -np.log(rivals.chances(rivals.outputs(moved, tokens, counts)[-1])[np.arange(3), labels]).mean()

    for k, slopes in enumerate(rivals.gradients(weights, tokens, counts, labels)):
        direction = rng.standard_normal(weights[k].shape)
        ahead, back = ([*weights[:k], weights[k] + h * direction, *weights[k + 1 :]] for h in (1e-6, -1e-6))
        assert np.isclose((loss(ahead) - loss(back)) / 2e-6, np.sum(slopes * direction), rtol=1e-5, atol=1e-8)


def test_set_sizes(tmp_path):
    (rows,) = tables_of(run(tmp_path, "studies/set_sizes.py", "--quick")).values()
    assert list(rows) == ["100", "60"]
    assert [cells[3] for cells in rows.values()] == ["every token", "their mean"]


def imported(name):
    """Return a study as a module; studies import each other by name, as when they are run."""
    sys.path.insert(0, str(ROOT / "studies"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "studies"))


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


def test_certificate_attack(tmp_path, monkeypatch, capsys):
    attack = imported("certificate_attack")
    small = (1, 3, 3, 150)
    chosen = [
        ("piece", "position", small, 0.1, 1.0, 0),
        ("piece", "hash", small, 0.1, 0.2, 0),
        ("learned piece", "causal mask", small, 0.1, 0.3, 0),
        ("noise", "Gaussian", small, 0.1, 0.0, 0),
        ("spoiled", "5 % of the outputs permuted", small, 0.0, 0.0, 0),
    ]
    assert len(set(map(str, attack.cells()))) == len(attack.cells()) > 1000
    assert {cell[0] for cell in attack.cells()[::10]} >= {"piece", "learned piece", "noise", "spoiled"}
    monkeypatch.setattr(attack, "cells", lambda: chosen)
    monkeypatch.setattr(sys, "argv", ["certificate_attack.py", "--out", str(tmp_path / "attack.jsonl")])
    attack.main()
    page = capsys.readouterr().out
    assert "1 of 1" in next(line for line in page.splitlines() if line.startswith("| constants and places |"))
    assert "| Gaussian | 0 of 1 |" in page
    assert "false acceptance" not in page
    monkeypatch.setattr(attack, "attacked", None)  # what the file holds is not run again
    attack.main()
    assert capsys.readouterr().out == page


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


def scripts():
    """Return the part of the documentation's gallery that reads and runs the examples."""
    sys.path.insert(0, str(ROOT / "docs" / "ext"))
    try:
        return importlib.import_module("scripts")
    finally:
        sys.path.remove(str(ROOT / "docs" / "ext"))


EXAMPLES = {one.name: one for one in scripts().examples()}


def shown(name):
    """Run the notebook of an example at small size; return the lines that it prints, and its namespace."""
    matplotlib.use("Agg")
    made = json.loads(scripts().notebook(EXAMPLES[name]))
    cells = tuple(scripts().Cell("", "".join(one["source"])) for one in made["cells"] if one["cell_type"] == "code")
    with plt.rc_context():
        printed, space = scripts().run(replace(EXAMPLES[name], cells=cells))
        assert space["figure"].axes
        plt.close("all")
    return "".join(printed).splitlines(), space


def test_every_door_has_an_example():
    assert {one.door for one in EXAMPLES.values()} == set(doors())  # and none is without a door


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_notebook_has_the_code_of_its_script_and_no_output(name):
    made = json.loads(scripts().notebook(EXAMPLES[name]))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert made["metadata"]["kernelspec"]["name"] == "python3"
    assert made["cells"][0]["source"][0] == f"# {EXAMPLES[name].title}\n"
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    for cell in made["cells"]:
        assert set(cell) - {"execution_count", "outputs"} == {"cell_type", "id", "metadata", "source"}
        assert (cell.get("execution_count"), cell.get("outputs", [])) == (None, [])
    code = ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code"]
    tree = ast.parse((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))
    assert ast.dump(ast.parse("\n".join(code))) == ast.dump(ast.Module(tree.body[1:], []))  # all but the docstring


def test_a_script_runs_as_a_reader_would_run_it(tmp_path):
    page = run(tmp_path, "examples/phase_diagram.py", "--quick")
    assert (tmp_path / "phase_diagram.png").stat().st_size > 10_000
    assert "above alpha = 0.1875" in page


def test_phase_diagram():
    lines, _ = shown("phase_diagram")
    rows = np.array([line.split() for line in lines[2:]], dtype=float)
    assert np.all(rows[:3, 2] > 0.9 * rows[:3, 1])  # no algorithm is better than the best, at this size within a tenth
    assert np.all(np.diff(rows[:, 2]) < 0)
    assert rows[-1, 1] == 0
    assert rows[-1, 2] < 1e-3


def test_one_curve():
    _, space = shown("one_curve")
    lines = [line for line in space["scaled"].lines if len(line.get_xdata()) > 1]
    assert len(lines) == 4
    for line in lines[1:]:  # one curve, whatever the length
        np.testing.assert_allclose(line.get_ydata(), lines[0].get_ydata(), atol=1e-6)


def test_weight_decay():
    peak, tuned = shown("weight_decay")[0]
    best, possible = float(tuned.split("it is ")[1].split(";")[0]), float(tuned.split()[-1])
    assert float(peak.split()[-1]) > 5 > 1 > best > possible


def test_set_regression():
    attention, ridge, kernel = (float(line.split()[-1]) for line in shown("set_regression")[0][1:])
    assert attention > 0.8
    assert max(ridge, kernel) < 0.3


def test_digits_as_sets():
    (line,), _ = shown("digits_as_sets")
    assert float(line.split(": ")[1].split()[0]) > 0.7


def test_what_a_bias_buys():
    match, average = ([int(word) for word in line.split() if word.isdigit()] for line in shown("what_a_bias_buys")[0])
    assert match[0] > 1.8 * match[1]
    assert average[0] < average[1]


def test_recover_a_head():
    one, too_few, both, error = shown("recover_a_head")[0]
    assert "from 42 questions (d² + d = 42)" in one
    assert "certificate not met" in too_few
    assert "certificate met" in both
    assert float(error.split()[-1]) < 1e-9


def test_sculpt_a_layer():
    carved, searched = shown("sculpt_a_layer")[0]
    assert "of rank 36" in carved
    assert float(searched.split()[-1]) < 0.2


def test_recover_a_trained_head():
    pytest.importorskip("torch", reason="torch is an extra: pip install 'attlas[torch]'")
    training, asked, found = shown("recover_a_trained_head")[0]
    before, after = (float(word.rstrip(",")) for word in training.split()[4:7:2])
    assert after < 0.8 * before
    assert "queries: 2 heads" in asked
    assert "certificate met" in found
    assert max(float(line.split()[-1]) for line in (asked, found)) < 1e-8


def test_tasks_in_context():
    few, _, many = (np.array(line.split(), float) for line in shown("tasks_in_context")[0][1:])
    assert few[2] > 5 * few[1]  # memorised
    assert many[2] < 1.1 * many[1]  # learned to learn


def test_plateau_and_drop():
    times = np.array([re.findall(r"\d+\.\d+", line)[-2:] for line in shown("plateau_and_drop")[0]], float)
    assert np.all(np.diff(times[:, 0]) > 9)  # a smaller start waits longer
    np.testing.assert_allclose(times[1:, 0], times[1:, 1], rtol=1e-3)


def test_position_or_meaning():
    switch, *minima, with_code, without = shown("position_or_meaning")[0]
    assert switch.endswith("2.566")
    tops = [float(line.split()[-1]) for line in minima]
    assert tops[0] > tops[1]  # the positional minimum is the sharper one
    assert "in 0 of 4 runs" in with_code
    assert "in 4 of 4 runs" in without


def test_one_teacher():
    (line,), space = shown("one_teacher")
    assert "supported" in line
    assert len(space["largest"]) == 6


def test_judge_a_claim():
    _, *lines = shown("judge_a_claim")[0]
    assert [line.split(": ")[1] for line in (lines[0], lines[3], lines[-1])] == ["refuted", "supported", "refuted"]


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
