"""`attlas recover` on files good and bad."""

import inspect
import json
import subprocess
import sys

import numpy as np
import pytest

from attlas import layers, recovery, tokens
from attlas.cli.recovery import recover
from attlas.numerics import stream


def run(*arguments, cwd):
    command = [sys.executable, "-m", "attlas", "recover", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def task(tmp_path):
    Theta, W = recovery.planted_layer(2, 4, stream(0, "teacher"))
    X = tokens.boolean(300, 3, 4, stream(0, "data"))
    np.savez(tmp_path / "data.npz", X=X, Y=layers.multi_head_attention(X, Theta, W))
    return tmp_path, recovery.Layer(Theta, W), X


def test_a_file_of_examples_becomes_a_layer(task):
    folder, truth, _ = task
    done = run("data.npz", "--out", "layer.npz", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "certificate        met" in done.stdout
    assert "heads = 1 " in done.stdout
    assert "start 1" in done.stderr
    with np.load(folder / "layer.npz") as file:
        found = recovery.Layer(file["Theta"], file["W"])
    assert recovery.parameter_error(found, truth) < 1e-9


def test_biases_and_masks_of_a_file_are_found(task):
    folder, truth, X = task
    truth = recovery.Layer(truth.Theta, truth.W, 0.5 * np.ones((2, 4)), np.ones(4), causal=True)
    padding = np.arange(3) >= stream(0, "lengths").integers(2, 4, len(X))[:, None]
    np.savez(folder / "model.npz", X=X, Y=truth(X, padding=padding), padding=padding)
    without = run("model.npz", "--heads", 2, "--causal", "--max-starts", 2, cwd=folder)
    assert without.returncode == 1
    assert "try --bias" in without.stdout
    done = run("model.npz", "--heads", 2, "--bias", "--causal", "--out", "layer.npz", cwd=folder)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "layer.npz") as file:
        found = recovery.Layer(**file, causal=True)
    assert recovery.parameter_error(found, truth) < 1e-9


def test_an_unmet_certificate_is_exit_one_and_json_says_why(task):
    folder, _, X = task
    np.savez(folder / "noise.npz", X=X, Y=stream(0, "noise").standard_normal((300, 3, 2)))
    done = run("noise.npz", "--heads", 2, "--max-starts", 2, "--max-steps", 5, "--json", cwd=folder)
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["certificate"]["met"] is False
    assert found["heads"] == 2
    assert found["status"] == "out of steps"
    assert found["history"] == [[2, found["certificate"]["residual"]]]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("absent.npz", (), "No such file"),
        ("text.npz", (), "not a .npz file of plain arrays"),
        ("one.npz", (), "no array Y"),
        ("array.npy", (), "holds one array"),
        ("object.npz", (), "not a .npz file of plain arrays"),
        ("data.npz", ("--heads", 1, "--method", "magic"), "method must be one of"),
        ("data.npz", ("--heads", 1, "--max-seconds", 0), "max_seconds"),
        ("data.npz", ("--out", "layer.txt"), "written as .npz"),
    ],
)
def test_bad_files_are_one_sentence(task, name, arguments, message):
    folder, _, X = task
    (folder / "text.npz").write_text("hello")
    np.savez(folder / "one.npz", X=X)
    np.save(folder / "array.npy", X)
    np.savez(folder / "object.npz", X=np.array([{}], dtype=object), Y=X)
    done = run(name, *arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_starts_as_often_as_the_function():
    """The number is written twice: importing the function would make every command slow."""
    command, function = (inspect.signature(one).parameters["max_starts"].default for one in (recover, recovery.learn))
    assert command == function
