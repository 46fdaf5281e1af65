"""Every judge can be turned: each claim refutes the wrong theories, broken learners and leaks that it names."""

import pytest

from attlas import lab
from attlas.claims import Outcome, find, names
from attlas.claims.power import detect

every_claim = pytest.mark.parametrize("name", names())


@every_claim
def test_every_claim_names_what_it_refutes(name):
    (claim,) = find([name])
    assert claim.mutations or not claim.tiers["quick"].decides, "a claim that nothing turns is an illustration"
    assert claim.design
    assert claim.unseen
    for mutation in claim.mutations:
        assert "{size" in mutation.name or len(mutation.sizes) == 1


@every_claim
def test_what_came_with_attlas_refutes_every_mutation(name, tmp_path):
    """Run 0 of the quick tier as shipped, changed as if the theory were wrong or the learner broken."""
    (entry,) = lab.verdicts([name], "quick", store=tmp_path / "none.db", shipped=True)
    assert entry.shipped, "its results are in src/attlas/results"
    if not entry.claim.tiers["quick"].decides:
        return
    missed = [
        each.name
        for each in detect(entry.claim, entry.measurements())
        if each.required and each.outcome is not Outcome.REFUTED
    ]
    assert missed == []
