"""Slurm without a Slurm: the job script, and workers started by a stand-in for sbatch."""

import os
import stat

import pytest

from attlas import lab
from attlas.errors import InputError
from attlas.store import check


def test_job_script():
    settings = lab.slurm_settings(
        {"queue": "long", "account": "physics", "walltime": "02:30:00", "memory": "8GB", "directives": ["--nice=5"],
         "prologue": ["module load python"]}
    )  # fmt: skip
    script = lab.job_script(settings)
    lines = script.splitlines()
    assert lines[0].startswith("#!")
    for directive in ("-J attlas", "-p long", "-A physics", "-t 02:30:00", "-n 1", "--cpus-per-task=1", "--nice=5"):
        assert f"#SBATCH {directive}" in lines
    assert any(line.startswith("#SBATCH --mem=") for line in lines)
    assert "export OPENBLAS_NUM_THREADS=1" in lines
    assert "module load python" in lines
    (worker,) = [line for line in lines if "dask_worker" in line or "dask worker" in line]
    assert "--nthreads 1" in worker
    assert lines.index("module load python") < lines.index(worker)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"wall": "1:00"}, "slurm setting wall"), ({"walltime": "soon"}, "walltime"), ({"memory": "plenty"}, "memory")],
)
def test_bad_settings(options, message):
    with pytest.raises(InputError, match=message):
        lab.slurm_settings(options)


def test_a_sweep_on_workers_that_sbatch_starts(fast, tmp_path, monkeypatch):
    """A stand-in for sbatch runs the script as it is; the sweep gives the bits of a serial one."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, body in {
        # like the real one it keeps the script, which the caller deletes as soon as this returns
        "sbatch": f'cp "$1" {tmp_path}/job-$$; nohup bash {tmp_path}/job-$$ >{tmp_path}/job-$$.log 2>&1 & echo "job $!"',
        "scancel": 'kill "$@" 2>/dev/null; true',
    }.items():
        (tools / name).write_text(f"#!/bin/bash\n{body}\n")
        (tools / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    slurm = {"interface": "lo", "memory": "1GB"}
    lab.run(["test.fast"], "full", store=tmp_path / "slurm.db", executor="slurm", workers=2, slurm=slurm)
    lab.run(["test.fast"], "full", store=tmp_path / "serial.db", executor="serial")
    assert check(tmp_path / "slurm.db").digest == check(tmp_path / "serial.db").digest


def test_without_slurm_nothing_is_started(fast, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="the command sbatch is not found"):
        lab.run(["test.fast"], store=tmp_path / "a.db", executor="slurm", workers=1)
    assert not (tmp_path / "a.db").exists()


def test_an_unknown_interface_is_one_sentence():
    with pytest.raises(InputError, match="cannot start with these settings"):
        lab.job_script(lab.slurm_settings({"interface": "nope0"}))
