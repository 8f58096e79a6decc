"""Dispatch of calls with nodes to `bind`: NumPy's ufuncs, functions, operators and methods, and the user's own primitives."""

from . import methods, operators, ufuncs
from .binding import bind_arguments, pass_leading_by_position, unsupported_message
from .class_views import ClassView, construct_view
from .functions import HANDLERS, with_user_line
from .hints import FOREIGN_NAMES, with_gradient_hint
from .methods import UnsizedError, number_methods
from .primitives import Primitive, accept_name, expand, mirror_module, primitive, stop_gradient

__all__ = [
    "FOREIGN_NAMES", "HANDLERS", "ClassView", "Primitive", "UnsizedError", "accept_name", "bind_arguments", "construct_view",
    "expand", "methods", "mirror_module", "number_methods", "operators", "pass_leading_by_position", "primitive", "stop_gradient",
    "ufuncs", "unsupported_message", "with_gradient_hint", "with_user_line",
]  # fmt: skip
