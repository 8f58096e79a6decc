"""How NumPy asks a node: ufuncs, functions, operators, methods, and functions of the user that are one node."""

from . import methods, operators
from .primitives import Primitive, expand, named, namespace, primitive, stop_gradient

__all__ = ["Primitive", "expand", "methods", "named", "namespace", "operators", "primitive", "stop_gradient"]
