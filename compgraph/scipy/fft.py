"""``scipy.fft``: each transform is one linear operation."""

from __future__ import annotations

from .policy import Policy

_ALONG_AXIS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "dct", "idct", "dst", "idst"]
_ALONG_AXES = [
    *["fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"],
    *["dctn", "idctn", "dstn", "idstn", "fftshift", "ifftshift"],
]

POLICY = Policy(
    module="scipy.fft",
    smooth={**dict.fromkeys([*_ALONG_AXIS, *_ALONG_AXES], "x"), "fht": "a", "ifht": "A"},
    operation_kinds={**dict.fromkeys(_ALONG_AXIS, "along"), **dict.fromkeys(_ALONG_AXES, "transform")},
    plain=frozenset(
        {"next_fast_len", "prev_fast_len", "set_backend", "skip_backend", "set_global_backend", "register_backend"}
        | {"get_workers", "set_workers"}
    ),
    unsupported={
        "fftfreq": "a plain sample spacing, or scipy.fft.fftfreq(n) / d",
        "rfftfreq": "a plain sample spacing, or scipy.fft.rfftfreq(n) / d",
        "fhtoffset": "plain numbers for dln, mu, initial and bias",
    },
)
