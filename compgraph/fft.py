"""Fourier transforms: the functions of ``numpy.fft``, with one more argument ``name=``: ``cg.fft.rfft(x, name="y")``."""

from __future__ import annotations

import numpy as np

from .protocols import mirror_module

__getattr__, __dir__ = mirror_module(np.fft, __name__)
