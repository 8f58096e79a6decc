"""How NumPy asks a node: ufuncs, functions, operators, methods, and functions of the user that are one node."""

from . import methods
from .primitives import Primitive, named, namespace, primitive

__all__ = ["Primitive", "methods", "named", "namespace", "primitive"]
