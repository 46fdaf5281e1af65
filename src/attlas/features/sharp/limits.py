"""Where the theory is sharp, and how far it is off elsewhere: measured against simulations (`studies/sharp_features.py`)."""

import numpy as np


def head_limits(heads: float, d: int, resolved: bool) -> tuple[float, str]:
    """Return the relative deviation that nine in ten settings keep, and what lies outside, for M heads on the sphere.

    `resolved` says whether the lengths of the heads' rows are (see `head_laws`).
    """
    if np.isinf(heads):
        return 0.07, ""
    if heads >= d**2:
        return (0.10 if resolved else 0.13), ""
    short = "5 to 15" if resolved else "15 to 27"
    return (0.15 if resolved else 0.25), (
        f"fewer heads than d^2 = {d**2}: targets that are nearly learned, such as low degrees of the query, come out too low"
        f" by {short} %; others stay within 10 %"
    )
