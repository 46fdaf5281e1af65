"""The attention layers that the doors study, as plain functions on arrays."""

from attlas.layers.random_features import attention_indices as attention_indices
from attlas.layers.random_features import deep_attention as deep_attention
from attlas.layers.random_features import hardmax as hardmax
from attlas.layers.random_features import multi_head_attention as multi_head_attention
from attlas.layers.random_features import random_feature_attention as random_feature_attention
from attlas.layers.random_features import random_feature_mlp as random_feature_mlp
from attlas.layers.random_features import softmax as softmax
from attlas.layers.random_features import symmetric as symmetric
from attlas.layers.random_features import with_one as with_one
