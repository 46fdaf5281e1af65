"""The attention layers that the doors study, as plain functions on arrays, one file per family.

Sequences come batch-first, (n, tokens, d). Every function works through the batch in blocks of at most `blocks.BLOCK`
numbers of scratch, so its memory is that of its input and output plus a constant (64 MB); no array of n x d x d numbers is
ever made.

References
----------
fu2023random (random-feature attention), chen2024provably (multi-head attention), boncoraglio2025bayes
(attention indices, deep attention).
"""

# what turns scores into weights
from attlas.layers.activations import hardmax as hardmax
from attlas.layers.activations import softmax as softmax

# attention indices, of one layer and of several
from attlas.layers.deep import deep_attention as deep_attention
from attlas.layers.indices import attention_indices as attention_indices
from attlas.layers.indices import symmetric as symmetric

# several heads with values
from attlas.layers.multi_head import multi_head_attention as multi_head_attention

# frozen random heads, with one query or pooled over all; frozen random neurons
from attlas.layers.pooled_features import pooled_feature_attention as pooled_feature_attention
from attlas.layers.random_features import random_feature_attention as random_feature_attention
from attlas.layers.random_features import random_feature_mlp as random_feature_mlp
from attlas.layers.random_features import with_one as with_one

# what is done to tokens before a layer sees them
from attlas.layers.token_preparation import layer_norm as layer_norm
from attlas.layers.token_preparation import sinusoidal_positions as sinusoidal_positions

# a whole block: attention, residuals and a network
from attlas.layers.transformer import transformer_block as transformer_block
