"""What holds for all tests."""

import os

for library in ("OMP", "OPENBLAS", "MKL"):  # one BLAS thread, so that a run beside other load is not slowed a hundredfold
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import autodiff.registry  # noqa: E402  (after the threads are set, since this imports NumPy)

# The package's own rules; test modules declare others.
RULES = dict(autodiff.registry.rules)
