"""Where the theory is sharp, and how far it is off elsewhere: measured against simulations (`studies/sharp_features.py`)."""

import numpy as np


def head_limits(heads: float, d: int) -> tuple[float, str]:
    """Return the relative deviation that nine in ten settings keep, and what lies outside, for M heads on the sphere."""
    if np.isinf(heads):
        return 0.07, ""
    if heads >= d**2:
        return 0.10, ""
    return 0.25, (
        f"fewer heads than d^2 = {d**2}: targets that are nearly learned (low degrees of the query or of key averages)"
        " come out too low by 15 to 27 %, because the lengths of a head's rows fluctuate too; others stay within 10 %"
    )
