"""Rules of the functions of ``scipy.special``, by family; `ufunc_rules` has the functions that declare rules of ufuncs."""

import scipy.special  # noqa: F401  (its import loads the modules of this package)
