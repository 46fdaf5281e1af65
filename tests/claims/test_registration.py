"""Designs are fixed before verdicts are looked at: what is registered is what runs."""

import json
from dataclasses import replace

import pytest

from attlas.claims import Sweep, find, names, registration
from attlas.errors import InputError

every_claim = pytest.mark.parametrize("name", names())


@every_claim
def test_every_design_is_registered(name):
    """Whoever changes a design raises the version and says why: python -m attlas.claims.registration CLAIM "why"."""
    (claim,) = find([name])
    assert registration.changes(claim) == []
    why = registration.registered()[name]["why"][str(claim.version)]
    assert why[0].isupper()


def test_claims_that_are_gone_are_not_registered():
    assert set(registration.registered()) == {registration.FRAME, *names()}


def test_the_code_that_all_claims_share_is_registered():
    """Whoever changes it says why: python -m attlas.claims.registration frame "why"."""
    assert registration.registered()[registration.FRAME]["digest"] == registration.frame()


def test_what_decides_is_in_the_digest_and_what_does_not_is_not():
    (claim,) = find(["recovery.queries-noise"])
    before = registration.design(claim)
    assert registration.design(replace(claim, caption="Other words.", statement="Other words.")) == before
    fewer = replace(claim, tiers=claim.tiers | {"quick": Sweep(claim.tiers["quick"].points[:-1], 3)})
    assert registration.design(fewer)["quick"] != before["quick"]
    assert registration.design(replace(claim, judge=claim.draw))["judge"] != before["judge"]


def test_the_digest_follows_helpers_and_ignores_comments(tmp_path, monkeypatch):
    def digest(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        return registration._digest(registration._source(name, "judge"))

    monkeypatch.syspath_prepend(str(tmp_path))
    body = "EPS = 0.05\n\n\ndef helper(x):\n    return x < EPS\n\n\ndef judge(x):\n    return helper(x)\n"
    first = digest("first_design", body)
    assert (
        digest(
            "same_design", body.replace("    return helper", '    """Words."""\n    # more words\n    return helper')
        )
        == first
    )
    assert digest("other_design", body.replace("0.05", "0.06")) != first
    loop = body.replace("    return helper(x)\n", "    for i in x:\n        helper(i)\n        x += 1\n    return x\n")
    assert digest("loop_design", loop) != digest("flat_design", loop.replace("        x += 1", "    x += 1"))
    assert digest("third_design", body + "\n\ndef draw(x):\n    return x\n") == first


def test_the_digest_follows_constants_in_pairs_and_kits_that_are_imported_whole(tmp_path, monkeypatch):
    """Both were missed once, and tolerances could change unseen."""
    monkeypatch.setattr(registration, "ROOM", "claims_of_")

    def digest(number, eps="0.1, 0.2", nothing="0.0"):
        folder = tmp_path / f"claims_of_{number}"
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "kit.py").write_text(f"NOTHING = {nothing}\n\n\ndef guard(x):\n    return x > NOTHING\n")
        lead = f"from claims_of_{number} import kit\n\nPLACE, HEIGHT = {eps}\n\n\n"
        (folder / "one.py").write_text(lead + "def judge(x):\n    return kit.guard(x) and x < HEIGHT\n")
        source = registration._source(f"claims_of_{number}.one", "judge")
        return registration._digest([line.replace(f"claims_of_{number}", "") for line in source])

    monkeypatch.syspath_prepend(str(tmp_path))
    first = digest(1)
    assert digest(2) == first
    assert digest(3, eps="0.1, 0.3") != first
    assert digest(4, nothing="1e-3") != first


def test_a_changed_design_needs_a_new_version(tmp_path, monkeypatch):
    (claim,) = find(["recovery.queries-noise"])
    monkeypatch.setattr(registration, "__file__", str(tmp_path / "registration.py"))
    entry = registration.design(claim) | {"why": {"1": "First."}, "judge": "other"}
    monkeypatch.setattr(registration, "registered", Registered({claim.id: entry}))
    with pytest.raises(InputError, match=r"differs from its registered design \(judge\): raise its version first"):
        registration.register(claim, "Because.")
    with pytest.raises(InputError, match="why"):
        registration.register(replace(claim, version=claim.version + 1), " ")
    registration.register(replace(claim, version=claim.version + 1), "Because.")
    written = json.loads((tmp_path / registration.FILE).read_text())[claim.id]
    assert written["why"] == {"1": "First.", str(claim.version + 1): "Because."}
    assert written["judge"] == registration.design(claim)["judge"]


class Registered:
    """Stands in for the cached reader of the file."""

    def __init__(self, entries):
        self.entries = entries

    def __call__(self):
        return self.entries

    def cache_clear(self):
        pass
