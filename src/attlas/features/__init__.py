"""Random-feature attention: frozen random query-key matrices, trained values.

What can such a layer learn, from how many samples, and what does a biased query-key matrix buy? (fu2023random)
"""

import importlib
from typing import TYPE_CHECKING, Any

# targets and their complexity
from attlas.features import targets as targets
from attlas.features.complexity import Complexity as Complexity
from attlas.features.complexity import complexity as complexity

# frozen weights
from attlas.features.heads import attention_heads as attention_heads
from attlas.features.heads import mlp_neurons as mlp_neurons

# learning curves and sample cost
from attlas.features.nested_curve import Curve as Curve
from attlas.features.sample_cost import cost_interval as cost_interval
from attlas.features.sample_cost import exponent as exponent
from attlas.features.sample_cost import sample_cost as sample_cost

if TYPE_CHECKING:
    from attlas.features.classifier import RandomAttentionClassifier as RandomAttentionClassifier
    from attlas.features.constrained import ConstrainedAttentionRegressor as ConstrainedAttentionRegressor
    from attlas.features.kernels import attention_kernel as attention_kernel
    from attlas.features.kernels import mlp_kernel as mlp_kernel
    from attlas.features.learning_curves import TargetData as TargetData
    from attlas.features.learning_curves import learning_curve as learning_curve
    from attlas.features.learning_curves import sample_sizes as sample_sizes
    from attlas.features.long_format import sets_from_long as sets_from_long
    from attlas.features.regressor import RandomAttentionRegressor as RandomAttentionRegressor
    from attlas.features.sets import Sets as Sets
    from attlas.features.sharp.own_tokens import OwnTheory as OwnTheory
    from attlas.features.sharp.own_tokens import theory_of as theory_of
    from attlas.features.sharp.theory import Theory as Theory
    from attlas.features.sharp.theory import theory as theory
    from attlas.features.standard_tokens import StandardTokens as StandardTokens
    from attlas.features.transformers import RandomAttentionFeatures as RandomAttentionFeatures
    from attlas.features.transformers import RandomMLPFeatures as RandomMLPFeatures

# these bring scikit-learn and numba, seconds that a command line should not wait for
_LATER = {
    "ConstrainedAttentionRegressor": "constrained",
    "RandomAttentionClassifier": "classifier",
    "RandomAttentionFeatures": "transformers",
    "RandomAttentionRegressor": "regressor",
    "RandomMLPFeatures": "transformers",
    "Sets": "sets",
    "StandardTokens": "standard_tokens",
    "TargetData": "learning_curves",
    "attention_kernel": "kernels",
    "learning_curve": "learning_curves",
    "mlp_kernel": "kernels",
    "sample_sizes": "learning_curves",
    "sets_from_long": "long_format",
    "OwnTheory": "sharp.own_tokens",
    "Theory": "sharp.theory",
    "theory": "sharp.theory",
    "theory_of": "sharp.own_tokens",
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
