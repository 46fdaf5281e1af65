"""Recovering the parameters of a multi-head layer, from random examples or from chosen queries.

The layer is F(X) = sum_i softmax(X Theta_i X^T) X W_i (chen2024provably). `learn` and `learn_from_queries` return the same
shape, a `Recovery`: a layer, a status, and a `Certificate` that says why it may be believed.
"""

from attlas.recovery.block.canonical import Block as Block
from attlas.recovery.block.canonical import block_error as block_error
from attlas.recovery.block.canonical import canonical_block as canonical_block
from attlas.recovery.block.learn import BlockRecovery as BlockRecovery
from attlas.recovery.block.learn import learn_block_from_queries as learn_block_from_queries
from attlas.recovery.block.network import Network as Network
from attlas.recovery.block.weights import BlockWeights as BlockWeights
from attlas.recovery.block.weights import planted_block as planted_block
from attlas.recovery.body import Body as Body
from attlas.recovery.certificate import Certificate as Certificate
from attlas.recovery.certificate import Recovery as Recovery
from attlas.recovery.comparison import difference as difference
from attlas.recovery.comparison import parameter_error as parameter_error
from attlas.recovery.comparison import same_function as same_function
from attlas.recovery.copies import Copies as Copies
from attlas.recovery.copies import copies as copies
from attlas.recovery.design import design as design
from attlas.recovery.fisher import Fisher as Fisher
from attlas.recovery.fisher import fisher as fisher
from attlas.recovery.fisher import information as information
from attlas.recovery.instances import planted_layer as planted_layer
from attlas.recovery.layer import Layer as Layer
from attlas.recovery.learn import learn as learn
from attlas.recovery.parity import control_layer as control_layer
from attlas.recovery.parity import on_slice_accuracy as on_slice_accuracy
from attlas.recovery.parity import parity_layer as parity_layer
from attlas.recovery.queries import learn_from_queries as learn_from_queries
from attlas.recovery.sculpt import Sculpted as Sculpted
from attlas.recovery.sculpt import sculpt as sculpt
from attlas.recovery.torch_modules import from_torch as from_torch
from attlas.recovery.torch_modules import to_torch as to_torch
from attlas.recovery.weights import layer_from_gpt2 as layer_from_gpt2
from attlas.recovery.weights import layer_from_weights as layer_from_weights
