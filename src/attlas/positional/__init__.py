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

# Training at finite d
from attlas.positional.minimise import Minimum as Minimum
from attlas.positional.minimise import minimise as minimise
from attlas.positional.objective import Objective as Objective
from attlas.positional.sharpness import sharpness as sharpness
from attlas.positional.task import Task as Task
from attlas.positional.task import sample as sample

# The best that any learner can do
from attlas.positional.bayes import BayesPoint as BayesPoint
from attlas.positional.bayes import bayes as bayes
from attlas.positional.bayes import bayes_alpha as bayes_alpha
from attlas.positional.bayes import bayes_error as bayes_error
from attlas.positional.bayes import exact_recovery as exact_recovery
from attlas.positional.bayes import hard_phase as hard_phase
from attlas.positional.bayes import weak_recovery as weak_recovery

# Algorithms that learn the meaning
from attlas.positional.message_passing import Estimate as Estimate
from attlas.positional.message_passing import message_passing as message_passing
from attlas.positional.readout import read_attention as read_attention
from attlas.positional.readout import read_gram as read_gram
from attlas.positional.readout import read_indices as read_indices
from attlas.positional.spectral import Spectral as Spectral
from attlas.positional.spectral import spectral as spectral
from attlas.positional.teacher import TeacherTask as TeacherTask
from attlas.positional.teacher import sample_teacher as sample_teacher

if TYPE_CHECKING:
    from attlas.positional.curves import curve as curve
    from attlas.positional.proximal import proximal_map as proximal_map
    from attlas.positional.shipped import table as table
    from attlas.positional.shipped import tabulated as tabulated
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
    "table": "shipped",
    "tabulated": "shipped",
}

__all__ = [
    "BayesPoint",
    "Estimate",
    "FixedPoint",
    "Minimum",
    "Model",
    "Objective",
    "Order",
    "Spectral",
    "Task",
    "TeacherTask",
    "baseline",
    "bayes",
    "bayes_alpha",
    "bayes_error",
    "exact_recovery",
    "hard_phase",
    "message_passing",
    "minimise",
    "read_attention",
    "read_gram",
    "read_indices",
    "sample",
    "sample_teacher",
    "sharpness",
    "spectral",
    "weak_recovery",
]
__all__ += list(_LATER)


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"attlas.positional.{_LATER[name]}"), name)
    raise AttributeError(f"module 'attlas.positional' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])
