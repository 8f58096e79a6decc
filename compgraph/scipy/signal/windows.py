"""``scipy.signal.windows``: windows with a parameter run SciPy's own code."""

from __future__ import annotations

from ..policy import Policy

_OWN_CODE = """
    kaiser gaussian general_gaussian exponential general_hamming general_cosine get_window chebwin kaiser_bessel_derived
"""

POLICY = Policy(
    module="scipy.signal.windows",
    own_code=frozenset(_OWN_CODE.split()),
    plain=frozenset({"boxcar", "triang", "parzen", "bohman", "blackman", "nuttall", "blackmanharris", "flattop", "bartlett"})
    | {"barthann", "hamming", "cosine", "hann", "lanczos"},
    unsupported={
        "tukey": "a plain alpha (it determines a number of samples)",
        "taylor": "plain parameters",
        "dpss": "a plain half bandwidth (the windows are eigenvectors without a rule)",
    },
)
