"""Derivatives"""
from . import grads
from .forward import jvp
from .operators import grad, value_and_grad, vjp
