"""What stands behind SciPy's Fourier transforms, which are written in C and hand each call to a backend.

A public function, ``scipy.fft.fft``, is a multimethod: it has no code that could be exchanged. SciPy's own backend, which is
asked unless a user has chosen another, answers with a function in Python of the same name and the same parameters, and that
one can be given other code as any other. So nothing is registered, backends of users are asked before and after as they were,
all threads are served, and `switch` takes it back. (A backend of ours, registered beside SciPy's, would be asked first in
every call, and could not be taken out again without taking out those of others.)
"""

from __future__ import annotations

import importlib
from types import FunctionType
from typing import Any

_PLACES = ("_basic_backend", "_realtransforms_backend", "_fftlog_backend")


def behind(function: Any) -> Any:
    """The Python function that answers for a public one: itself, or that of SciPy's backend; None if there is none."""
    if isinstance(function, FunctionType):
        return function
    if type(function).__name__ != "_Function" or not str(getattr(function, "__module__", "")).startswith("scipy.fft"):
        return None
    for place in _PLACES:
        found = getattr(importlib.import_module(f"scipy.fft.{place}"), function.__name__, None)
        if isinstance(found, FunctionType):
            return found
    return None
