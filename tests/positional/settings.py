"""The settings that the tests share, each fixed point computed once."""

from functools import cache

from attlas.positional import Model, state_evolution

F = Model(mixture=0.3, encoding=3.0, token_scale=1.0, decay=0.5)  # nothing jumps for alpha >= 2
HALF = Model(mixture=0.5, encoding=3.0)
P = Model(mixture=0.3, encoding=1.0, token_scale=0.5, decay=0.01)  # the published setting
G = Model(mixture=0.3, encoding=2.0, token_scale=0.5, decay=0.01)


@cache
def point(model, alpha, branch, tol=1e-6):
    return state_evolution(model, alpha, branch, tol=tol)
