import os
import subprocess
import sys
from pathlib import Path

import pytest

from attlas.claims import Claim, doors, find, names
from attlas.errors import InputError


def test_finds_every_claim_file():
    ids = [claim.id for claim in find()]
    assert ids == names()
    assert len(ids) == len(set(ids))
    by_door = [name.split(".")[0] for name in ids]
    assert list(dict.fromkeys(by_door)) == list(doors())  # the claims of a door stand together, doors in their order
    assert {"aim.gaussian-indices", "features.invariance"} <= set(ids)


@pytest.mark.parametrize("claim", find(), ids=lambda claim: claim.id)
def test_every_claim_is_complete(claim):
    """Statement, source, both tiers; the plan of the quick tier fits its minute by its own estimate."""
    assert isinstance(claim, Claim)
    assert claim.statement.endswith(".")
    assert claim.source
    assert set(claim.tiers) == {"quick", "full"}
    quick = claim.tiers["quick"]
    assert sum(claim.cost(point).seconds * seeds for point, seeds in quick) < 2 * 60
    for sweep in claim.tiers.values():
        assert len(set(sweep.points)) == len(sweep.points)


def test_unknown_claim_suggests_the_nearest():
    with pytest.raises(InputError, match=r"did you mean aim\.gaussian-indices\?"):
        find(["aim.gausian-indexes"])
    with pytest.raises(InputError, match="attlas list"):
        find(["zzz"])


def test_a_user_adds_a_claim_by_naming_its_module(fast):
    assert find(["test.fast"])[0].statement.startswith("Many points")


@pytest.mark.parametrize(
    ("module", "message"), [("no_such_module", "cannot be imported"), ("json", "no claim called CLAIM")]
)
def test_a_wrong_module_is_named(monkeypatch, module, message):
    monkeypatch.setenv("ATTLAS_CLAIMS", module)
    with pytest.raises(InputError, match=message):
        find()


def test_two_claims_of_one_id_are_refused(monkeypatch):
    monkeypatch.setenv("ATTLAS_CLAIMS", "attlas.claims.features.invariance")
    with pytest.raises(InputError, match="two claims are called"):
        find()


def test_a_claim_in_the_folder_one_works_in_is_found_by_the_command(tmp_path):
    """As a person would: the installed command, which unlike ``python -m`` does not look in the folder by itself."""
    claim = (Path(__file__).parents[1] / "fast_claim.py").read_text()
    (tmp_path / "my_own_claim.py").write_text(claim.replace('"test.fast"', '"my.own"'))
    command = [str(Path(sys.executable).with_name("attlas")), "show", "my.own", "--json"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "ATTLAS_CLAIMS": "my_own_claim"
    }
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"my.own"' in done.stdout
