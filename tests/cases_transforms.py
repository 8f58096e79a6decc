"""Cases of the family compgraph.policies.transforms."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from arguments import Function, Sketch, complexes, real

# ------------------------------------------------------------------------------------ Fourier transforms

ALONG_ONE: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "vector, even": ((4,), {}),
    "vector, odd": ((5,), {}),
    "axis 0": ((4, 2), {"axis": 0}),
    "axis -2": ((2, 3, 2), {"axis": -2}),
    "cut": ((2, 6), {"n": 3}),
    "cut, even": ((6, 2), {"n": 4, "axis": 0}),
    "padded": ((2, 3), {"n": 6}),
    "padded, odd": ((3, 2), {"n": 7, "axis": 0}),
    "backward": ((4,), {"norm": "backward"}),
    "ortho": ((2, 5), {"norm": "ortho"}),
    "forward": ((4, 2), {"norm": "forward", "axis": 0}),
    "two": ((2,), {}),
    "to one": ((3,), {"n": 1}),
    "zero size": ((0, 3), {}),
}
ALONG_SEVERAL: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "all": ((2, 3), {}),
    "even": ((3, 4), {}),
    "axes": ((2, 3, 4), {"axes": (0, 2)}),
    "axes out of order": ((2, 3, 4), {"axes": (-1, 0)}),
    "one axis": ((3, 4), {"axes": (0,)}),
    "axes twice": ((3, 4), {"axes": (1, 1)}),
    "cut and padded": ((2, 5), {"s": (3, 4), "axes": (0, 1)}),
    "lists": ((2, 5), {"s": [3, -1], "axes": [1, 0]}),
    "backward": ((2, 3), {"norm": "backward"}),
    "ortho": ((2, 3), {"norm": "ortho"}),
    "forward": ((2, 3), {"norm": "forward"}),
    "zero size": ((0, 3, 2), {"axes": (-2, -1)}),
}


def transforms(function: Function, make: Any, options: dict[str, Any]) -> list[Sketch]:
    """A transform with several choices of options; also as real and imaginary parts, which are real."""
    return [
        *((label, partial(function, **kwargs), make(*shape)) for label, (shape, kwargs) in options.items()),
        ("imaginary part", lambda x: np.imag(function(x)), make(2, 4)),
        ("real part of a power", lambda x: np.real(function(x * x) ** 2), make(2, 4)),
    ]


def positional(name: str, make: Any) -> list[Sketch]:
    """Options by position."""
    function = getattr(np.fft, name)
    several = name[-1] in "2n"
    return [
        (
            "by position",
            (lambda x: function(x, (3, 4), (0, 1), "ortho")) if several else (lambda x: function(x, 5, 0)),
            make(4, 3),
        )
    ]


ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "fftn", "ifftn", "rfftn", "irfftn")
REAL_ONLY = ("rfft", "ihfft", "rfftn")
FOURIER: dict[str, list[Sketch]] = {
    **{f"fft_{f}": transforms(getattr(np.fft, f), real, ALONG_ONE) + positional(f, real) for f in ONE},
    **{f"fft_{f}": transforms(getattr(np.fft, f), real, ALONG_SEVERAL) + positional(f, real) for f in SEVERAL},
    **{
        f"fft_{f}": [
            ("vector, even", getattr(np.fft, f), real(4)),
            ("vector, odd", getattr(np.fft, f), real(5)),
            ("all axes", getattr(np.fft, f), real(2, 3)),
            ("axis", partial(getattr(np.fft, f), axes=-1), real(2, 3)),
            ("axes", partial(getattr(np.fft, f), axes=(0, 2)), real(2, 3, 3)),
            ("axes, a list", partial(getattr(np.fft, f), axes=[1]), real(2, 3)),
            ("zero size", getattr(np.fft, f), real(0, 3)),
        ]
        for f in ("fftshift", "ifftshift")
    },
}
COMPLEX_FOURIER: dict[str, list[Sketch]] = {
    **{f"fft_{f}": transforms(getattr(np.fft, f), complexes, ALONG_ONE) for f in ONE if f not in REAL_ONLY},
    **{f"fft_{f}": transforms(getattr(np.fft, f), complexes, ALONG_SEVERAL) for f in SEVERAL if f not in REAL_ONLY},
    "fft_fftshift": [("vector", np.fft.fftshift, complexes(3))],
}
COMPOSED_FOURIER: dict[str, list[Sketch]] = {
    "rfft2": transforms(np.fft.rfft2, real, ALONG_SEVERAL),
    "irfft2": transforms(np.fft.irfft2, complexes, ALONG_SEVERAL),
}

# ----------------------------------------------------------------------------------------------------- all

SKETCHES: dict[str, list[Sketch]] = {**FOURIER}
COMPLEX_SKETCHES: dict[str, list[Sketch]] = {**COMPLEX_FOURIER}
# The same checks, for functions that NumPy composes of others and that so have no rule of their own.
COMPOSED_SKETCHES: dict[str, list[Sketch]] = {**COMPOSED_FOURIER}
