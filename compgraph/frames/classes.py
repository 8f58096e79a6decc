"""Classes as CPython defines them."""

from __future__ import annotations

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def is_heap_type(kind: type) -> bool:
    """Whether a class was created at run time, as all classes defined in Python are.

    Examples
    --------
    >>> class Model: ...
    >>> is_heap_type(Model), is_heap_type(dict)
    (True, False)
    """
    return bool(kind.__flags__ & _HEAP_TYPE)
