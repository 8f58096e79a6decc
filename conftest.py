"""What holds for all tests."""

import os

for library in ("OMP", "OPENBLAS", "MKL"):  # one BLAS thread, so that a run beside other load is not slowed a hundredfold
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import autodiff.registry  # noqa: E402  (after the threads are set, since this imports NumPy)
from autodiff.grads.special_scipy import UNKNOWN  # noqa: E402

# The package's own rules; test modules declare others, and those of UNKNOWN only say that no derivative is known.
RULES = {opname: rule for opname, rule in autodiff.registry.rules.items() if opname not in UNKNOWN}
