"""The functions of ``numpy.emath``, whose results are complex where no real one exists, with one more argument ``name=``."""

from __future__ import annotations

import numpy as np

from .protocols import mirror_module

__getattr__, __dir__ = mirror_module(np.emath, __name__)
