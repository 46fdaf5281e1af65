"""Attention-indexed models: what the best learner can do, and which algorithms get there.

A teacher S = W W^T / sqrt(r d) of width r = rho d is seen through n = alpha d^2 attention outputs
(boncoraglio2025bayes).
"""

from attlas.aim.model import teacher as teacher
