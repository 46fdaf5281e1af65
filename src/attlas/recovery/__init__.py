"""Recovering the parameters of a multi-head layer, from random examples or from chosen queries.

The layer is F(X) = sum_i softmax(X Theta_i X^T) X W_i (chen2024provably).
"""

from attlas.recovery.copies import Copies as Copies
from attlas.recovery.copies import copies as copies
from attlas.recovery.instances import planted_layer as planted_layer
from attlas.recovery.layer import Layer as Layer
from attlas.recovery.layer import difference as difference
from attlas.recovery.layer import parameter_error as parameter_error
from attlas.recovery.layer import same_function as same_function
from attlas.recovery.learn import Certificate as Certificate
from attlas.recovery.learn import Recovered as Recovered
from attlas.recovery.learn import learn as learn
from attlas.recovery.parity import control_layer as control_layer
from attlas.recovery.parity import on_slice_accuracy as on_slice_accuracy
from attlas.recovery.parity import parity_layer as parity_layer
from attlas.recovery.queries import Probed as Probed
from attlas.recovery.queries import learn_from_queries as learn_from_queries
from attlas.recovery.sculpt import Body as Body
from attlas.recovery.sculpt import Sculpted as Sculpted
from attlas.recovery.sculpt import sculpt as sculpt
