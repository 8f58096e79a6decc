"""``scipy.fft``: each transform is one linear operation."""

from __future__ import annotations

from .policy import Policy

POLICY = Policy(
    module="scipy.fft",
    smooth={
        **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), "x"),
        **dict.fromkeys(("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"), "x"),
        **dict.fromkeys(("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"), "x"),
        **dict.fromkeys(("dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn"), "x"),
        **dict.fromkeys(("fftshift", "ifftshift"), "x"),
        "fht": "a",
        "ifht": "A",
    },
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
