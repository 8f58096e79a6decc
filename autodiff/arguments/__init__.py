"""Arguments and results of operators: nesting, selection by argnums, validation, and special kinds of arrays.

`Arguments` selects the leaves that a function is differentiated by. `validation` converts and checks arguments, directions and
results. `shared_memory` makes arguments that overlap in memory read-only. `labelled_arrays` handles pandas and xarray.
`class_checks` detects functions whose result depends on the class of a value. `derived_functions` pickles the functions that
operators return.
"""

from compgraph.trees import flatten, unflatten

from .argnums import Argnums, Arguments
from .class_checks import find_class_check, require_same_by_label, require_same_value
from .derived_functions import function_operator, pickle_as_call, short_tracebacks
from .labelled_arrays import is_labelled, require_aligned
from .shared_memory import call_with_locked, find_shared, is_locked, lock
from .validation import (
    LostGraphError,
    as_argument,
    as_constant,
    as_direction,
    as_result,
    lost_graph_error,
    require_array,
    require_function,
    require_primals,
    split_aux,
    warn_zero_derivative,
)

__all__ = [
    "Argnums", "Arguments", "LostGraphError", "as_argument", "as_constant", "as_direction", "as_result", "call_with_locked",
    "find_class_check", "find_shared", "flatten", "function_operator", "is_labelled", "is_locked", "lock", "lost_graph_error",
    "pickle_as_call", "require_aligned", "require_array", "require_function", "require_primals", "require_same_by_label",
    "require_same_value", "short_tracebacks", "split_aux", "unflatten", "warn_zero_derivative",
]  # fmt: skip
