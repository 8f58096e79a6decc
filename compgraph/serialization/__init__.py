"""Graphs that are pickled, deep-copied and handed to other processes whole."""

from . import graphs as graphs  # importing it lets nodes be pickled and copied
from . import moved as moved  # importing it lets pickles of earlier versions be loaded
from .carried import is_shared, object_at, place_of
from .functions import function_called, name_of

__all__ = ["function_called", "graphs", "is_shared", "name_of", "object_at", "place_of"]
