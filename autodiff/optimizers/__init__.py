"""Optimizers, which update parameters by gradients, and `minimize`, which calls SciPy with exact derivatives.

An optimizer is constructed from a tree of variables and arrays. Its ``step(gradients)`` updates them in place.
"""

from __future__ import annotations

from .base import Optimizer
from .clipping import clip_by_global_norm, clip_by_norm, clip_by_value
from .rules import SGD, AdaGrad, Adam, AdamW, RMSProp
from .schedules import Constant, Cosine, Exponential, Piecewise, Polynomial, StepDecay, WarmUp
from .scipy_methods import METHODS, minimize
from .step_controller import History, StepController

__all__ = [
    "METHODS", "SGD", "AdaGrad", "Adam", "AdamW", "Constant", "Cosine", "Exponential", "History", "Optimizer", "Piecewise",
    "Polynomial", "RMSProp", "StepController", "StepDecay", "WarmUp", "clip_by_global_norm", "clip_by_norm", "clip_by_value",
    "minimize",
]  # fmt: skip
