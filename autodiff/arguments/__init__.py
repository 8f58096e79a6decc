"""What functions are given and give back: nested arguments, which of them are differentiated, and what they must be."""

from .aliases import find_shared, is_locked, lock, run_locked
from .argnums import Argnums, Arguments, of_functions
from .asked import questions_of, require_same_by_label, require_same_value
from .checks import LostGraphError, as_argument, as_constant, as_direction, as_result, lost_graph, require_array, warn_of_zeros
from .derived import pickle_as_call
from .labels import is_labelled, require_aligned
from .pytrees import flatten, unflatten, with_aux

__all__ = [
    "Argnums", "Arguments", "LostGraphError", "as_argument", "as_constant", "as_direction", "as_result", "find_shared",
    "flatten", "is_labelled", "is_locked", "lock", "lost_graph", "of_functions", "pickle_as_call", "questions_of",
    "require_aligned", "require_array", "require_same_by_label", "require_same_value", "run_locked", "unflatten",
    "warn_of_zeros", "with_aux",
]  # fmt: skip
