"""The Python functions behind SciPy's Fourier transforms, which themselves are objects in C that hand each call to a backend.

A public function, ``scipy.fft.fft``, is a multimethod: it has no code that could be exchanged. SciPy's own backend, which
answers unless a user has chosen another, has a Python function of the same name and parameters, and that one is exchanged. So
nothing is registered, users' backends are asked as before, all threads are served, and `switch` takes it back. (A backend of
ours, registered beside SciPy's, would be asked first in every call, and could not be removed without removing those of others.)
"""

from __future__ import annotations

import importlib
from types import FunctionType
from typing import Any

_PLACES = ("_basic_backend", "_realtransforms_backend", "_fftlog_backend")


def behind(function: Any) -> Any:
    """The Python function that runs when a public one is called: itself, or that of SciPy's FFT backend; None if it is in C."""
    if isinstance(function, FunctionType):
        return function
    if type(function).__name__ != "_Function" or not str(getattr(function, "__module__", "")).startswith("scipy.fft"):
        return None
    for place in _PLACES:
        found = getattr(importlib.import_module(f"scipy.fft.{place}"), function.__name__, None)
        if isinstance(found, FunctionType):
            return found
    return None
