"""The decision that theories of infinite d share: simulation over theory is 1 + C/d, within its errors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import fit_line, mean_interval

LEVEL = 0.99
SHARP = 0.1  # an extrapolation known to less than a tenth decides nothing


def finite_size_verdict(ratios: Sequence[tuple[Any, int, float]], group_name: str, what: str) -> Verdict:
    """Judge simulated over predicted values of several settings and sizes.

    At each setting the ratio is fitted as a + C/d over all seeds and sizes. The claim needs 1 inside the interval of every
    a (99 % for all together), and the mean gap |ratio - 1| at the largest size no larger than at the smallest, within
    errors (three of them). An a known to worse than 10 %, or a gap that grows, is inconclusive.

    Parameters
    ----------
    ratios : sequence of (setting, d, ratio)
    group_name, what : str
        What a setting and a ratio are, for the sentence.
    """
    groups = {key: [(d, r) for k, d, r in ratios if k == key] for key in dict.fromkeys(k for k, _, _ in ratios)}
    sizes = sorted({d for _, d, _ in ratios})
    if len(sizes) < 2 or any(sum(d == size for d, _ in rows) < 2 for rows in groups.values() for size in sizes):
        return Verdict(Outcome.INCONCLUSIVE, "needs two sizes, and two seeds at each size of every setting", 0.0, "")
    if not np.isfinite([r for _, _, r in ratios]).all():
        return Verdict(Outcome.REFUTED, f"{what} is not finite somewhere", -np.inf, "standard errors")
    level = 1 - (1 - LEVEL) / len(groups)
    numbers: dict[str, float] = {}
    margins, blurred = [], []
    for key, rows in groups.items():
        line = fit_line([1 / d for d, _ in rows], [r for _, r in rows])
        low, high = line.intercept_interval(level)
        half = (high - low) / 2
        last, *_ = mean_interval([r for d, r in rows if d == sizes[-1]], level)
        numbers |= {
            f"{key} at d = infinity": line.intercept,
            f"{key} at d = infinity ±": half,
            f"{key} C": line.slope,
            f"{key} at d = {sizes[-1]}": last,
        }
        margins.append((half - abs(line.intercept - 1)) / max(line.intercept_error, 1e-300))
        if half > SHARP:
            blurred.append(str(key))
    growth = _growth(groups, sizes)
    numbers["growth of the mean gap, in standard errors"] = growth
    closest = list(groups)[int(np.argmin(margins))]
    first_gap, last_gap = (np.mean([abs(np.mean([r for d, r in rows if d == size]) - 1) for rows in groups.values()])
                           for size in (sizes[0], sizes[-1]))  # fmt: skip
    reason = (
        f"{what} extrapolates to {numbers[f'{closest} at d = infinity']:.4f} ± {numbers[f'{closest} at d = infinity ±']:.4f}"
        f" in the {group_name} nearest to failing, {closest}; mean gap {first_gap:.1%} at d = {sizes[0]},"
        f" {last_gap:.1%} at d = {sizes[-1]}"
    )
    margin = float(min(margins))
    if margin < 0:
        return Verdict(Outcome.REFUTED, reason, margin, "standard errors", numbers)
    if growth > 3:
        reason = f"the gap grows with d, by {growth:.1f} standard errors; {reason}"
        return Verdict(Outcome.INCONCLUSIVE, reason, 3 - growth, "standard errors", numbers)
    if blurred:
        reason = f"too noisy at {', '.join(blurred)}; {reason}"
        return Verdict(Outcome.INCONCLUSIVE, reason, margin, "standard errors", numbers)
    return Verdict(Outcome.SUPPORTED, reason, margin, "standard errors", numbers)


def _growth(groups: dict[Any, list[tuple[int, float]]], sizes: Sequence[int]) -> float:
    """Return by how many standard errors the mean over settings of |mean ratio - 1| rises, first to last size."""
    means, variances = [], []
    for size in (sizes[0], sizes[-1]):
        own = [[r for d, r in rows if d == size] for rows in groups.values()]
        means.append(np.mean([abs(np.mean(r) - 1) for r in own]))
        variances.append(np.sum([np.var(r, ddof=1) / len(r) for r in own]) / len(own) ** 2)
    return float((means[1] - means[0]) / max(np.sqrt(sum(variances)), 1e-300))
