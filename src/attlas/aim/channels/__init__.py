"""How a learner sees the attention indices: linearly with noise, through softmax, through hardmax, or otherwise."""

from attlas.aim.channels.channel import Channel as Channel
from attlas.aim.channels.custom import Custom as Custom
from attlas.aim.channels.deep import Deep as Deep
from attlas.aim.channels.defaults import ChannelDefaults as ChannelDefaults
from attlas.aim.channels.defaults import complete as complete
from attlas.aim.channels.defaults import one_layer as one_layer
from attlas.aim.channels.hardmax import Hardmax as Hardmax
from attlas.aim.channels.linear import Linear as Linear
from attlas.aim.channels.softmax import Softmax as Softmax
