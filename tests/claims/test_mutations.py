"""Every judge can be turned: each claim refutes the wrong theories, broken learners and leaks that it names."""

import pytest

from attlas.claims import find, names

every_claim = pytest.mark.parametrize("name", names())


@every_claim
def test_every_claim_names_what_it_refutes(name):
    (claim,) = find([name])
    assert claim.mutations or not claim.tiers["quick"].decides, "a claim that nothing turns is an illustration"
    assert claim.design
    assert claim.unseen
    for mutation in claim.mutations:
        assert "{size" in mutation.name or len(mutation.sizes) == 1
