"""How calls reach `record`: NumPy's ufuncs, functions, operators and methods on nodes, and the user's own primitives."""

from . import methods, operators, ufuncs
from .binding import bind_arguments, unsupported
from .functions import HANDLERS, in_steps
from .hints import NAMES_ELSEWHERE, hinting
from .methods import UnsizedError, number_methods
from .primitives import Primitive, expand, named, namespace, primitive, stop_gradient

__all__ = [
    "HANDLERS", "NAMES_ELSEWHERE", "Primitive", "UnsizedError", "bind_arguments", "expand", "hinting", "in_steps", "methods",
    "named", "namespace", "number_methods", "operators", "primitive", "stop_gradient", "ufuncs", "unsupported",
]  # fmt: skip
