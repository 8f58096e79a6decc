"""Rules of the ufuncs of ``scipy.special``, by family; `declaring` has the functions that declare them."""

import scipy.special  # noqa: F401  (before the modules of this package, which its import loads)
