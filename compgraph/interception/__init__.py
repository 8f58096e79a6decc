"""Interception: support for nodes in code that dispatches by no protocol, such as SciPy.

NumPy dispatches to nodes by its protocols (``__array_function__``); SciPy has none. So the code of SciPy's public Python
functions is replaced by code that looks for nodes among the arguments. The package `scipy` selects the function that runs for
nodes. ``README.md`` lists all patches, their lifetime and their reason.
"""

from . import conversion_calls
from .activation import ImportHook, adapt_imported, intercept, interception, is_loading, patch_list_functions
from .borrowing import as_borrowed
from .callers import as_python_function, is_library
from .code_patches import argument_has_node, enable_code_patches, patch_code, python_implementation, unpatched
from .introspection import is_introspection_patch
from .random_functions import UNSEEDED, DrawMonitor, draw_handler, draw_unmonitored, with_draw_handler
from .random_generators import generator_state, reachable_generators

__all__ = [
    "UNSEEDED", "DrawMonitor", "ImportHook", "adapt_imported", "argument_has_node", "as_borrowed", "as_python_function",
    "conversion_calls", "draw_handler", "draw_unmonitored", "enable_code_patches", "generator_state", "intercept",
    "interception", "is_introspection_patch", "is_library", "is_loading", "patch_code", "patch_list_functions",
    "python_implementation", "reachable_generators", "unpatched", "with_draw_handler",
]  # fmt: skip
