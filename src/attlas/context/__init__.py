"""In context: what a layer of linear attention learns to learn, from how many tasks, contexts and examples.

Contexts of alpha d examples of a linear task, kappa d training tasks, tau d^2 sequences, one ridge-trained layer
(lu2024asymptotic, letey2025pretrain).
"""

# ruff: noqa: I001 (grouped by subject, not by file)

# Theory: the errors on new and on training tasks, as d grows
from attlas.context.theory import Theory as Theory
from attlas.context.theory import theory as theory
from attlas.context.best_ridge import BestRidge as BestRidge
from attlas.context.best_ridge import best_ridge as best_ridge
from attlas.context.curve import curve as curve

# Theory at a finite d
from attlas.context.finite_size import FiniteSize as FiniteSize
from attlas.context.finite_size import finite_size as finite_size
from attlas.context.finite_size import finite_size_of as finite_size_of

# Tasks and sequences, drawn from their exact law
from attlas.context.tasks import TaskSet as TaskSet
from attlas.context.tasks import draw_tasks as draw_tasks
from attlas.context.sequences import Sequences as Sequences
from attlas.context.sequences import read_contexts as read_contexts
from attlas.context.sequences import sample as sample

# Layers, and their exact errors
from attlas.context.layer import Errors as Errors
from attlas.context.layer import Layer as Layer
from attlas.context.fit import fit as fit
from attlas.context.moments import Moments as Moments
from attlas.context.moments import fresh_moments as fresh_moments
from attlas.context.moments import task_moments as task_moments
from attlas.context.population import population as population

# Bayes: the best that a context allows, on new tasks and on the training tasks
from attlas.context.contexts import draw_contexts as draw_contexts
from attlas.context.contexts import task_errors as task_errors
from attlas.context.discrete_prior import discrete_bayes as discrete_bayes
from attlas.context.freezing import Freezing as Freezing
from attlas.context.freezing import freezing as freezing
from attlas.context.gaussian_prior import InContextRidge as InContextRidge
from attlas.context.gaussian_prior import information as information
from attlas.context.gaussian_prior import ridge_estimate as ridge_estimate
from attlas.context.gaussian_prior import ridge_in_context as ridge_in_context

# Depth: more layers, and prompts that need them
from attlas.context.changing_covariance import TrainedStep as TrainedStep
from attlas.context.changing_covariance import drawn_excess as drawn_excess
from attlas.context.changing_covariance import step_excess as step_excess
from attlas.context.changing_covariance import trained_step as trained_step
from attlas.context.depth import DeepLinear as DeepLinear
from attlas.context.depth import depth_error as depth_error

# Dynamics: a plateau, then a drop
from attlas.context.plateau import Flow as Flow
from attlas.context.plateau import gradient_flow as gradient_flow
from attlas.context.plateau import half_time as half_time
from attlas.context.plateau import logistic_error as logistic_error

# Softmax: the full layer, trained by gradients
from attlas.context.softmax_layer import SoftmaxFit as SoftmaxFit
from attlas.context.softmax_layer import SoftmaxLayer as SoftmaxLayer
from attlas.context.softmax_layer import fit_softmax as fit_softmax
