"""attlas: an executable atlas of what attention layers can learn.

Three doors, one question each:

- ``attlas.features``: what can a layer with frozen random heads learn, from how many samples?
- ``attlas.recovery``: can the parameters of a multi-head layer be recovered?
- ``attlas.aim``: what is the best error any learner can reach, and which algorithms get there?

Beneath them ``attlas.tokens`` draws sequences and ``attlas.layers`` holds the layers themselves; above
them ``attlas.claims`` states what the literature says, and ``attlas.lab`` runs it. Nothing is imported
before it is used.
"""

import importlib
from types import ModuleType

__version__ = "0.1.0"

_ROOMS = (
    "aim",
    "claims",
    "errors",
    "features",
    "lab",
    "layers",
    "numerics",
    "recovery",
    "report",
    "store",
    "tokens",
)

__all__ = ["__version__", *_ROOMS]  # noqa: PLE0604


def __getattr__(name: str) -> ModuleType:
    if name in _ROOMS:
        return importlib.import_module(f"attlas.{name}")
    raise AttributeError(f"attlas has no {name!r}; its rooms are {', '.join(_ROOMS)}")


def __dir__() -> list[str]:
    return sorted(__all__)
