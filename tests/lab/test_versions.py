"""Results of several versions in one sweep are told apart, and refused where that is asked."""

import pytest

from attlas import lab
from attlas.errors import InputError
from attlas.lab.execute import versions
from attlas.store import Record, Store, read


@pytest.fixture
def older(fast, tmp_path):
    """Eight of the twenty results of a sweep, of another numpy."""
    lab.run(["test.fast"], "full", store=tmp_path / "now.db", executor="serial")
    path = tmp_path / "a.db"
    with Store(path) as store:
        for r in list(read(tmp_path / "now.db"))[:8]:
            theirs = versions() | {"numpy": "1.99.0"}
            store.put(Record(r.claim, r.version, r.point, r.seed, r.payload, r.seconds, theirs))
    return path


def test_resuming_under_other_versions_is_said(older, capfd):
    summary = lab.run(["test.fast"], "full", store=older, executor="serial")
    assert summary.mixed == {"numpy 1.99.0": 8}
    assert summary.computed == 12
    said = capfd.readouterr().err
    assert "8 of 8 results in the store were computed with other versions than those here" in said
    assert "8 with numpy 1.99.0" in said
    (entry,) = lab.verdicts(["test.fast"], "full", store=older)
    assert sorted(entry.versions.values()) == [8, 12]
    assert "8 with attlas" in entry.mixture


def test_same_versions_refuses_and_computes_nothing(older, fast, attlas_here):
    fast.write_bytes(b"")
    with pytest.raises(InputError, match=r"8 with numpy 1\.99\.0; leave out --same-versions"):
        lab.run(["test.fast"], "full", store=older, executor="serial", same_versions=True)
    assert not fast.read_text()
    done = attlas_here("run", "test.fast", "--full", "--store", older, "--workers", "1", "--same-versions")
    assert done.returncode == 2
    assert "numpy 1.99.0" in done.stderr


def test_verdicts_know(older, attlas_here):
    lab.run(["test.fast"], "full", store=older, executor="serial")
    done = attlas_here("verdicts", "test.fast", "--full", "--store", older)
    assert "computed with several versions" in " ".join(done.stdout.split())


def test_one_version_is_no_mixture(fast, tmp_path):
    for _ in range(2):
        summary = lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="serial", same_versions=True)
        assert summary.mixed == {}
    (entry,) = lab.verdicts(["test.fast"], "full", store=tmp_path / "a.db")
    assert entry.mixture == ""
