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
