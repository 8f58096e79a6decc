"""Linear algebra: the functions of ``numpy.linalg``, with one more argument ``name=``: ``cg.linalg.inv(x, name="y")``."""

from __future__ import annotations

import numpy as np

from .protocols import mirror_module

__getattr__, __dir__ = mirror_module(np.linalg, __name__)
