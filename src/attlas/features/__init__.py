"""Random-feature attention: frozen random query-key matrices, trained values.

What can such a layer learn, from how many samples, and what does a biased query-key matrix buy? (fu2023random)
"""

from attlas.features.heads import attention_heads as attention_heads
from attlas.features.heads import mlp_neurons as mlp_neurons
