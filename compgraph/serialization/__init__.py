"""Pickling and deep-copying of nodes with their ancestors. `parameters` saves values alone."""

from . import graphs as graphs  # importing it lets nodes and guards be pickled
from . import moved as moved  # importing it lets pickles of earlier versions be loaded
from . import pickled_functions as pickled_functions  # importing it lets primitives be pickled
from .pickled_functions import SELF_PICKLING, import_object, is_importable, module_and_name, pickled_form, resolve_function

__all__ = [
    "SELF_PICKLING", "graphs", "import_object", "is_importable", "module_and_name", "pickled_form", "pickled_functions",
    "resolve_function",
]  # fmt: skip
