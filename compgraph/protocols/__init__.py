"""How NumPy asks a node: ufuncs, functions, operators, methods, and functions of the user that are one node."""

from . import methods, operators
from .binding import bind, unsupported
from .functions import HANDLERS, in_steps
from .primitives import Primitive, expand, named, namespace, primitive, stop_gradient

__all__ = [
    "HANDLERS", "Primitive", "bind", "expand", "in_steps", "methods", "named", "namespace", "operators", "primitive",
    "stop_gradient", "unsupported",
]  # fmt: skip
