"""Arguments and results that nest: what their leaves are, and how they nest.

optree takes trees apart, imported when the first tree nests. `structures` does the same in Python, where there is no optree.
"""

from .tree_flattening import flatten, unflatten

__all__ = ["flatten", "unflatten"]
