"""Arguments and results of operators: nesting, selection by argnums, validation, and special kinds of arrays.

`Arguments` selects the leaves that a function is differentiated by. `validation` converts and checks arguments, directions and
results. `shared_memory` makes arguments that overlap in memory read-only. `labeled_arrays` handles pandas and xarray.
`class_checks` detects functions whose result depends on the class of a value. `derived_functions` pickles the functions that
operators return.
"""

from compgraph.trees import flatten, unflatten

from .argnums import Argnums, Arguments
from .class_checks import find_class_check, require_class_independence, require_label_independence
from .derived_functions import function_operator, pickle_as_call, short_tracebacks
from .labeled_arrays import is_labeled, require_aligned
from .shared_memory import call_with_read_only, find_shared_positions, is_read_only_tracer, make_read_only
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
    "Argnums", "Arguments", "LostGraphError", "as_argument", "as_constant", "as_direction", "as_result",
    "call_with_read_only", "find_class_check", "find_shared_positions", "flatten", "function_operator", "is_labeled",
    "is_read_only_tracer", "lost_graph_error", "make_read_only", "pickle_as_call", "require_aligned", "require_array",
    "require_class_independence", "require_function", "require_label_independence", "require_primals", "short_tracebacks",
    "split_aux", "unflatten", "warn_zero_derivative",
]  # fmt: skip
