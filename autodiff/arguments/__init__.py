"""What functions are given and give back: nested arguments, which of them are differentiated, and what they must be."""

from .argnums import Argnums, Arguments
from .asked import require_same_value
from .checks import as_argument, as_direction, as_result, lost_graph, warn_of_zeros
from .pytrees import flatten, unflatten, with_aux

__all__ = [
    "Argnums", "Arguments", "as_argument", "as_direction", "as_result", "flatten", "lost_graph", "require_same_value",
    "unflatten", "warn_of_zeros", "with_aux",
]  # fmt: skip
