"""Fourier transforms: the functions of ``numpy.fft``, with one more argument ``name=``: ``cg.fft.rfft(x, name="y")``."""

from __future__ import annotations

import numpy as np

from .protocols import namespace

__getattr__, __dir__ = namespace(np.fft, __name__)
