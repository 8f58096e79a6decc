"""Pickling and deep-copying of graphs: a node takes along all it was computed from. `parameters` saves values alone."""

from . import graphs as graphs  # importing it lets nodes be pickled and copied
from . import moved as moved  # importing it lets pickles of earlier versions be loaded
from . import pickled_functions, sent_guards  # importing them lets primitives and guards be pickled
from .pickled_functions import PICKLED_WHOLE, function_called, import_object, is_shared, name_of, place_of

__all__ = [
    "PICKLED_WHOLE",
    "function_called",
    "graphs",
    "import_object",
    "is_shared",
    "name_of",
    "pickled_functions",
    "place_of",
    "sent_guards",
]
