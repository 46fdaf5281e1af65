"""What must not change when code is moved: the keys of every point, stored results and what follows from them.

``assets/three-seeds.db.gz`` is the quick tier of every claim at its first three seeds, ``three-seeds.json`` digests of the
keys of both tiers and the verdicts on that store, all made by version 0.1 before the claims moved into folders.
"""

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from attlas import lab
from attlas.claims import find
from attlas.store import read

ASSETS = Path(__file__).parent / "assets"
PINNED = json.loads((ASSETS / "three-seeds.json").read_text())
RAISED = {  # claims whose numbers had to change since, and why
    "aim.deep": "message passing settles",
    "aim.denoiser": "the denoiser is smooth past the edges",
    "aim.hardmax": "message passing settles",
    "aim.sequence-length": "message passing settles",
    "aim.softmax-threshold": "message passing settles",
    "aim.state-evolution": "message passing settles",
    "aim.width": "message passing settles",
    "lenses.one-teacher": "message passing settles",
}
RENAMED = {  # words in the names of numbers, then and now
    " first less second": " first minus second",
    "descent, averaged": "averaged descent",
    "descent, one run": "gradient descent, one run",
    "trained with decay": "training with weight decay",
    "random features, infinite heads": "attention, infinitely many heads",
    "random features, 4d heads": "attention, finitely many heads",
}
CLAIMS = [name for name in PINNED if name not in RAISED]
SLOW = {"aim.deep", "aim.hardmax", "features.bias-correlation", "features.bias-misaligned", "recovery.hard-instances"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("pinned") / "three-seeds.db"
    path.write_bytes(gzip.decompress((ASSETS / "three-seeds.db.gz").read_bytes()))
    return path


def renamed(name):
    for before, after in RENAMED.items():
        name = name.replace(before, after)
    return name


def digest(claim, tier):
    keys = sorted(cell.key for cell in lab.plan([claim], tier))
    return hashlib.sha256("\n".join(keys).encode()).hexdigest()


@pytest.mark.parametrize("name", PINNED)
def test_the_key_of_every_point_stays(name):
    """Unless the version of a claim was raised, with a reason."""
    (claim,) = find([name])
    assert (claim.version == PINNED[name]["version"]) == (name not in RAISED)
    if name not in RAISED:
        assert {tier: digest(claim, tier) for tier in ("quick", "full")} == {
            tier: PINNED[name][tier] for tier in ("quick", "full")
        }


@pytest.mark.parametrize("name", CLAIMS)
def test_a_store_of_before_is_judged_as_before(store, name):
    pinned = PINNED[name]
    (entry,) = lab.verdicts([name], "quick", store=store, seeds=pinned["seeds"])
    assert entry.verdict is not None, "the store holds every point of the plan"
    assert entry.status == pinned["outcome"]
    assert entry.verdict.margin == pytest.approx(pinned["margin"], rel=1e-9)
    then = {renamed(key): value for key, value in pinned["numbers"].items()}
    now = {key: entry.verdict.numbers.get(key) for key in then}  # a verdict may tell more than it did
    assert now == pytest.approx(then, rel=1e-9, abs=1e-14, nan_ok=True)


def test_a_store_of_before_is_resumed_where_it_stopped(store):
    for name in CLAIMS:
        cells = lab.plan(find([name]), "quick", seeds=PINNED[name]["seeds"])
        expected = lab.expect(cells, store)
        assert (expected.found, expected.seconds) == (len(cells), 0.0)


def cheapest(store):
    """The result of each claim that took the least time."""
    found = {}
    for record in read(store, CLAIMS):
        if record.claim not in found or record.seconds < found[record.claim].seconds:
            found[record.claim] = record
    return found


@pytest.fixture(scope="module")
def records(store):
    return cheapest(store)


@pytest.mark.parametrize("name", [name for name in CLAIMS if name not in SLOW])
def test_a_point_measured_again_gives_what_was_stored(records, name):
    """Not to the bit: another processor may round otherwise. Rounding is all that may differ."""
    (claim,) = find([name])
    record = records[name]
    again = claim.measure(claim.settings(**record.point), record.seed)
    assert set(record.result) <= set(again)
    for key, value in record.result.items():
        if isinstance(value, str | bool):
            assert again[key] == value
        else:
            np.testing.assert_allclose(again[key], value, rtol=1e-5, atol=1e-9, err_msg=key)
