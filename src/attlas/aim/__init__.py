"""Attention-indexed models: what the best learner can do, and which algorithms get there.

A teacher S = W W^T / sqrt(r d) of width r = rho d is seen through n = alpha d^2 attention outputs
(boncoraglio2025bayes).
"""

# ruff: noqa: I001 (grouped by subject, not by file)

# Channels: how a learner sees the teacher
from attlas.aim.channels import Channel as Channel
from attlas.aim.channels import ChannelDefaults as ChannelDefaults
from attlas.aim.channels import Custom as Custom
from attlas.aim.channels import Deep as Deep
from attlas.aim.channels import Hardmax as Hardmax
from attlas.aim.channels import Linear as Linear
from attlas.aim.channels import Softmax as Softmax

# Tasks: a teacher, and data to learn it from
from attlas.aim.model import Task as Task
from attlas.aim.model import sample as sample
from attlas.aim.model import teacher as teacher

# Theory: the best error that any learner can reach, as d grows
from attlas.aim.fixed_point import FixedPoint as FixedPoint
from attlas.aim.phase_diagram import phase_diagram as phase_diagram
from attlas.aim.spectrum import density as density
from attlas.aim.spectrum import edges as edges
from attlas.aim.spectrum import mmse as mmse
from attlas.aim.spectrum import stieltjes as stieltjes
from attlas.aim.state_evolution import bayes_error as bayes_error
from attlas.aim.state_evolution import curve as curve
from attlas.aim.state_evolution import fixed_points as fixed_points
from attlas.aim.state_evolution import iterate as iterate
from attlas.aim.state_evolution import plugin_error as plugin_error
from attlas.aim.state_evolution import recovery_threshold as recovery_threshold
from attlas.aim.state_evolution import state_evolution as state_evolution
from attlas.aim.state_evolution import weak_recovery_threshold as weak_recovery_threshold

# Algorithms: from data to an estimate of the teacher
from attlas.aim.denoiser import denoise as denoise
from attlas.aim.denoiser import shrink as shrink
from attlas.aim.descent import Descent as Descent
from attlas.aim.descent import DescentErrors as DescentErrors
from attlas.aim.descent import descend as descend
from attlas.aim.message_passing import Estimate as Estimate
from attlas.aim.message_passing import message_passing as message_passing
from attlas.aim.minimise import Minimum as Minimum
from attlas.aim.minimise import minimise as minimise

# Training: what descent with weight decay reaches, as d grows
from attlas.aim.entrywise import Entrywise as Entrywise
from attlas.aim.entrywise import entrywise as entrywise
from attlas.aim.entrywise import minimise_entrywise as minimise_entrywise
from attlas.aim.family import Family as Family
from attlas.aim.family import family as family
from attlas.aim.measurements import measurements as measurements
from attlas.aim.phase_diagram import trained_diagram as trained_diagram
from attlas.aim.trained import BestDecay as BestDecay
from attlas.aim.trained import Trained as Trained
from attlas.aim.trained import best_decay as best_decay
from attlas.aim.trained import trained as trained
from attlas.aim.trained import trained_curve as trained_curve
from attlas.aim.trained_thresholds import TrainedThreshold as TrainedThreshold
from attlas.aim.trained_thresholds import interpolation_threshold as interpolation_threshold
from attlas.aim.trained_thresholds import trained_threshold as trained_threshold
