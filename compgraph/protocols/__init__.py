"""How calls reach `record`: NumPy's ufuncs, functions, operators and methods on nodes, and the user's own primitives."""

from . import methods, operators
from .binding import bind, unsupported
from .functions import HANDLERS, in_steps
from .primitives import Primitive, expand, named, namespace, primitive, stop_gradient

__all__ = [
    "HANDLERS", "Primitive", "bind", "expand", "in_steps", "methods", "named", "namespace", "operators", "primitive",
    "stop_gradient", "unsupported",
]  # fmt: skip
