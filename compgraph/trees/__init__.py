"""Nested arguments and results: their leaves and their structure.

optree flattens trees; it is imported for the first nested tree. `optree_fallback` does the same in Python if it is missing.
"""

from .tree_flattening import flatten, register_container, unflatten

__all__ = ["flatten", "register_container", "unflatten"]
