"""Recovering the parameters of a multi-head layer, from random examples or from chosen queries.

The layer is F(X) = sum_i softmax(X Theta_i X^T) X W_i (chen2024provably).
"""

from attlas.recovery.instances import planted_layer as planted_layer
