"""Rules of the ufuncs of ``scipy.special``, by family; `entering` says how they are entered."""

import scipy.special  # noqa: F401  (before the modules of this package, which its import loads)
