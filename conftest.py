"""Settings of all tests: one BLAS thread, so that a run beside other load is not slowed a hundredfold."""

import os

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
