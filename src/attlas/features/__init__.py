"""Random-feature attention: frozen random query-key matrices, trained values.

What can such a layer learn, from how many samples, and what does a biased query-key matrix buy? (fu2023random)
"""

import importlib
from typing import TYPE_CHECKING, Any

from attlas.features import targets as targets
from attlas.features.complexity import Complexity as Complexity
from attlas.features.complexity import complexity as complexity
from attlas.features.heads import attention_heads as attention_heads
from attlas.features.heads import mlp_neurons as mlp_neurons
from attlas.features.ridge import Curve as Curve
from attlas.features.sample_cost import cost_interval as cost_interval
from attlas.features.sample_cost import exponent as exponent
from attlas.features.sample_cost import sample_cost as sample_cost

if TYPE_CHECKING:
    from attlas.features.constrained import ConstrainedAttentionRegressor as ConstrainedAttentionRegressor
    from attlas.features.regressor import RandomAttentionFeatures as RandomAttentionFeatures
    from attlas.features.regressor import RandomAttentionRegressor as RandomAttentionRegressor
    from attlas.features.regressor import RandomMLPFeatures as RandomMLPFeatures
    from attlas.features.regressor import learning_curve as learning_curve
    from attlas.features.kernels import attention_kernel as attention_kernel
    from attlas.features.kernels import mlp_kernel as mlp_kernel

# these bring scikit-learn and numba, seconds that a command line should not wait for
_LATER = {
    "ConstrainedAttentionRegressor": "constrained",
    "RandomAttentionFeatures": "regressor",
    "RandomAttentionRegressor": "regressor",
    "RandomMLPFeatures": "regressor",
    "learning_curve": "regressor",
    "attention_kernel": "kernels",
    "mlp_kernel": "kernels",
}


__all__ = [
    "Complexity",
    "Curve",
    "attention_heads",
    "complexity",
    "cost_interval",
    "exponent",
    "mlp_neurons",
    "sample_cost",
    "targets",
]
__all__ += list(_LATER)


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"attlas.features.{_LATER[name]}"), name)
    raise AttributeError(f"module 'attlas.features' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])
