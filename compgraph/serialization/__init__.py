"""Graphs that are pickled, deep-copied and handed to other processes whole."""

from . import graphs as graphs  # importing it lets nodes be pickled and copied
from . import moved as moved  # importing it lets pickles of earlier versions be loaded

__all__ = ["graphs"]
