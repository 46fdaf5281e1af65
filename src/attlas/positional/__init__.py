"""Position or meaning: does a layer attend by place or by content, when does it switch, and does training find it?

A teacher of rank one mixes attention by place and by meaning; a student with positional encodings learns it from
n = alpha d sequences of two tokens (cui2024phase).
"""

# ruff: noqa: I001 (grouped by subject, not by file)

import importlib
from typing import TYPE_CHECKING, Any

# The model, and the best layer that knows positions only
from attlas.positional.model import Model as Model
from attlas.positional.baseline import baseline as baseline

# Theory of training: two minima, as d grows
from attlas.positional.fixed_point import FixedPoint as FixedPoint
from attlas.positional.fixed_point import Order as Order

if TYPE_CHECKING:
    from attlas.positional.curves import curve as curve
    from attlas.positional.proximal import proximal_map as proximal_map
    from attlas.positional.evolution import state_evolution as state_evolution
    from attlas.positional.crossings import Crossing as Crossing
    from attlas.positional.crossings import crossing as crossing
    from attlas.positional.crossings import switch as switch

# these bring numba, a second that a command line should not wait for
_LATER = {
    "Crossing": "crossings",
    "crossing": "crossings",
    "curve": "curves",
    "proximal_map": "proximal",
    "state_evolution": "evolution",
    "switch": "crossings",
}

__all__ = [
    "FixedPoint",
    "Model",
    "Order",
    "baseline",
]
__all__ += list(_LATER)


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"attlas.positional.{_LATER[name]}"), name)
    raise AttributeError(f"module 'attlas.positional' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])
