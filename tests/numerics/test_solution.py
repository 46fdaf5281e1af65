import re

import numpy as np
import pytest

from attlas.errors import ConvergenceError
from attlas.numerics import Event, Solution, Status


def test_only_a_converged_value_passes():
    good = Solution(1.0, Status.CONVERGED, 1e-12, 7)
    assert good.or_raise() is good
    with pytest.raises(
        ConvergenceError, match=r"the search did not converge: out of steps after 3 steps, residual 0\.5"
    ) as error:
        Solution(1.0, Status.OUT_OF_STEPS, 0.5, 3, np.ones(3)).or_raise("the search")
    assert error.value.solution.history.shape == (3,)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.CONVERGED])
def test_every_failure_says_what_to_do(status):
    """A message that ends with what happened leaves its reader alone."""
    with pytest.raises(ConvergenceError, match=rf"{status} .*; {re.escape(status.advice)}"):
        Solution(1.0, status, 0.5, 3).or_raise()
    assert len(status.advice.split()) > 4


@pytest.mark.parametrize(("step", "of", "share"), [(0, 10, 0.0), (5, 10, 0.5), (12, 10, 1.0), (3, 0, 0.0)])
def test_an_event_knows_its_share(step, of, share):
    event = Event(step, of, "half way")
    assert event.share == share
    assert np.isnan(event.value)
