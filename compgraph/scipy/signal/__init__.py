"""``scipy.signal``: convolutions and filters have rules; SciPy's Python code that calls them runs on nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal
from numpy.typing import NDArray

from ... import ops
from ...array_types import Array
from ...bind import bind
from ...graph import as_operand, to_values
from ...interception import unpatched
from ...protocols import unsupported_message
from ..policy import Policy

ops.register_operation(scipy.signal.lfilter, "scipy_signal_lfilter")
ops.register_operation(scipy.signal.convolve2d, "scipy_signal_convolve2d")
ops.register_operation(scipy.signal.upfirdn, "scipy_signal_upfirdn")


def to_arrays(*values: object) -> tuple[Any, ...]:
    """Convert values to arrays; nodes are unchanged."""
    return tuple([ops.ensure_array(as_operand(value)) for value in values])


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: object = None) -> Any:
    """As ``scipy.signal.lfilter``. An initial state is an input to the recursive part alone, ``A y = B x + zi``."""
    b, a, x = to_arrays(b, a, x)
    output = bind(scipy.signal.lfilter, (b, a, x), {"axis": axis})
    if zi is None:
        return output
    state = _broadcast_state(zi, b, a, x, axis)
    count = x.shape[axis]
    length = state.shape[-1]
    leading = a[:1]
    state_input = _fit_length(state, count)
    y = np.moveaxis(output, axis, -1) + bind(scipy.signal.lfilter, (leading, a, state_input), {"axis": -1})
    final_state = _tail(b / leading, np.moveaxis(x, axis, -1), length) - _tail(a / leading, y, length)
    final_state = final_state + _fit_length(state[..., count:], length)
    return np.moveaxis(y, -1, axis), np.moveaxis(final_state, -1, axis)


def _broadcast_state(zi: Any, b: NDArray[Any], a: NDArray[Any], x: Any, axis: int) -> Any:
    """Broadcast a state to the shape of the signal, as SciPy does, and move its axis to the end."""
    shape = list(x.shape)
    shape[axis] = max(len(a), len(b)) - 1
    (zi,) = to_arrays(zi)
    if np.ndim(zi) != x.ndim or np.shape(zi)[axis] != shape[axis]:
        raise ValueError(f"scipy.signal.lfilter: zi must have shape {tuple(shape)}, not {np.shape(zi)}")
    return np.moveaxis(np.broadcast_to(zi, shape), axis, -1)


def _fit_length(x: Any, length: int) -> Any:
    """Cut or zero-pad an array along the last axis."""
    missing = length - x.shape[-1]
    return x[..., :length] if missing <= 0 else np.concatenate([x, np.zeros((*x.shape[:-1], missing), x.dtype)], axis=-1)


def _tail(coefficients: object, x: Array, length: int) -> Any:
    """The tail of a convolution beyond the end of the signal: ``sum over k of c[k] x[n + m - k]`` for ``0 <= m < length``."""
    c = _fit_length(coefficients, 2 * length + 1)
    m, j = np.ogrid[:length, :length]
    last = np.flip(_fit_length(np.flip(x, -1), length), -1)
    return np.matmul(last, np.transpose(c[m + length - j]))


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """As ``scipy.signal.sosfilt``: the sections are applied sequentially."""
    sos, x = to_arrays(sos, x)
    if np.ndim(sos) != 2 or np.shape(sos)[1] != 6:
        raise ValueError(f"scipy.signal.sosfilt: sos must have shape (n_sections, 6), not {np.shape(sos)}")
    if zi is None:
        for section in range(len(sos)):
            x = lfilter(sos[section, :3], sos[section, 3:], x, axis)
        return x
    shape = list(np.shape(x))
    shape[axis] = 2
    (zi,) = to_arrays(zi)
    if np.shape(zi) != (len(sos), *shape):
        raise ValueError(f"scipy.signal.sosfilt: zi must have shape {(len(sos), *shape)}, not {np.shape(zi)}")
    final_states = []
    for section in range(len(sos)):
        x, state = lfilter(sos[section, :3], sos[section, 3:], x, axis, zi[section])
        final_states.append(state)
    return x, np.stack(final_states)


# ------------------------------------------------------------ order filters, and convolutions in two dimensions

_BOUNDARIES: dict[str, Any] = {"wrap": "wrap", "circular": "wrap", "symm": "symmetric", "symmetric": "symmetric"}


def order_filter(a: Any, domain: object, rank: int) -> Any:
    """As ``scipy.signal.order_filter``: the array is padded with zeros."""
    (a,) = to_arrays(a)
    mask = np.asarray(domain) != 0
    if any(n % 2 == 0 for n in mask.shape):
        raise ValueError(f"scipy.signal.order_filter: domain must have odd lengths, but has shape {mask.shape}")
    if mask.ndim != np.ndim(a):
        raise ValueError(f"scipy.signal.order_filter: domain has {mask.ndim} axes, but the array has {np.ndim(a)}")
    padded = np.pad(a, [(n // 2, n // 2) for n in mask.shape])
    windows = np.lib.stride_tricks.sliding_window_view(padded, mask.shape)
    return np.sort(windows[..., mask], axis=-1)[..., rank]


def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """As ``scipy.signal.medfilt``."""
    (volume,) = to_arrays(volume)
    sizes = np.broadcast_to(3 if kernel_size is None else kernel_size, (np.ndim(volume),))
    return order_filter(volume, np.ones(tuple(sizes.tolist())), int(np.prod(sizes)) // 2)


def medfilt2d(input: Any, kernel_size: int = 3) -> Any:
    """As ``scipy.signal.medfilt2d``."""
    (input,) = to_arrays(input)
    if np.ndim(input) != 2:
        raise ValueError(f"scipy.signal.medfilt2d: input must have two axes, not {np.ndim(input)}")
    return medfilt(input, kernel_size)


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """As ``scipy.signal.convolve2d``: the array is padded according to `boundary` first."""
    in1, in2 = to_arrays(in1, in2)
    is_zero_padded = boundary in ("fill", "pad") and not np.any(fillvalue)
    if is_zero_padded or mode == "valid":
        return bind(scipy.signal.convolve2d, (in1, in2), {"mode": mode})
    ends = [(n - 1, n - 1) for n in in2.shape]
    if boundary in _BOUNDARIES:
        padded = np.pad(in1, ends, _BOUNDARIES[boundary])
    elif boundary in ("fill", "pad"):
        padded = np.pad(in1, ends, constant_values=fillvalue)
    else:
        raise ValueError("scipy.signal.convolve2d: boundary must be 'fill', 'circular' or 'symmetric'")
    full = bind(scipy.signal.convolve2d, (padded, in2), {"mode": "valid"})
    if mode == "full":
        return full
    if mode != "same":
        raise ValueError("scipy.signal.convolve2d: mode must be 'full', 'same' or 'valid'")
    starts = [(n - 1) // 2 for n in in2.shape]
    return full[tuple([slice(start, start + n) for start, n in zip(starts, in1.shape, strict=True)])]


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: int = 0) -> Any:
    """As ``scipy.signal.correlate2d``: a convolution with the flipped, conjugated kernel."""
    in1, in2 = to_arrays(in1, in2)
    flipped = np.conjugate(np.flip(in2))
    if mode != "same":
        return convolve2d(in1, flipped, mode, boundary, fillvalue)
    full = convolve2d(in1, flipped, "full", boundary, fillvalue)
    starts = [n // 2 for n in in2.shape]  # the second of the two middle elements of an even kernel
    return full[tuple([slice(start, start + n) for start, n in zip(starts, in1.shape, strict=True)])]


def choose_conv_method(in1: object, in2: object, mode: str = "full", measure: bool = False) -> Any:
    """As ``scipy.signal.choose_conv_method``, which depends on shapes alone for floating-point arrays."""
    return scipy.signal.choose_conv_method(*[np.zeros(x.shape, x.dtype) for x in to_arrays(in1, in2)], mode, measure)


# ------------------------------------------------------------ resampling and design


def upfirdn(h: object, x: object, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: int = 0) -> Any:
    """As ``scipy.signal.upfirdn``, with zeros around the signal."""
    if mode != "constant" or cval:
        raise TypeError(
            f"scipy.signal.upfirdn on nodes: mode={mode!r}, cval={cval!r} has no derivative. Leave them out to pad with zeros, "
            "or pad the signal by np.pad"
        )
    return bind(scipy.signal.upfirdn, to_arrays(h, x), {"up": up, "down": down, "axis": axis})


def bilinear(b: Any, a: Any, fs: Any = 1.0) -> tuple[Any, Any]:
    """As ``scipy.signal.bilinear``: ``s = 2 fs (z - 1) / (z + 1)``, with both polynomials multiplied by ``(z + 1)**n``."""
    b, a, fs = to_arrays(b, a, fs)
    b, a = (np.trim_zeros(np.atleast_1d(x), "f") for x in (b, a))
    if b.ndim != 1 or a.ndim != 1 or fs.ndim:
        raise ValueError("scipy.signal.bilinear: b and a must be vectors, and fs a number")
    n = max(len(b), len(a)) - 1
    factor = np.sqrt(2 * fs)
    powers = np.stack([_expand_powers(q, n - q) for q in range(n + 1)])
    parts = []
    for coefficients in (b, a):
        q = np.arange(len(coefficients))
        weighted = coefficients[::-1] * factor ** (2.0 * q - n)
        parts.append(np.trim_zeros(np.matmul(weighted, powers[: len(coefficients)])[::-1], "f"))
    numerator, denominator = scipy.signal.normalize(*parts)
    return numerator, denominator


def _expand_powers(q: int, p: int) -> Any:
    """The coefficients of ``(z - 1)**q (z + 1)**p``, from the lowest power to the highest."""
    coefficients = np.ones(1)
    for factor in [(-1.0, 1.0)] * q + [(1.0, 1.0)] * p:
        coefficients = np.convolve(coefficients, factor)
    return coefficients


def place_poles(A: Any, B: Any, poles: Any, method: str = "YT", rtol: float = 1e-3, maxiter: int = 30) -> Any:  # noqa: N803
    """As ``scipy.signal.place_poles`` for one input, where the gains are unique; the result has no ``X``.

    An eigenvector x of ``A - B K`` for the pole p satisfies ``P (A - p) x = 0``, where P projects onto the complement of B. The
    scale of x is arbitrary: here ``w x = 1``, where w is the conjugate of SciPy's vector.
    """
    result = unpatched(scipy.signal.place_poles)(*map(to_values, (A, B, poles)), method, rtol, maxiter)  # checks the arguments
    A, B, poles = to_arrays(A, B, poles)  # noqa: N806
    size = A.shape[0]
    if B.shape[1] != 1 and size > 1:
        advice = "matrices without derivatives for several inputs, where the gains are the result of an iteration"
        raise TypeError(unsupported_message("scipy.signal.place_poles", advice))
    given_order = list(to_values(poles))
    poles = poles[np.array([given_order.index(pole) for pole in result.requested_poles])]
    projection = np.eye(size) - B @ B.T / np.sum(B * B)
    columns = []
    for k in range(size):
        scale = np.outer(to_values(B)[:, 0], np.conj(result.X[:, k]))
        columns.append(np.linalg.solve(projection @ (A - poles[k] * np.eye(size)) + scale, to_values(B)[:, 0]))
    vectors = np.stack(columns, axis=1)
    closed_loop = np.linalg.solve(vectors.T, (vectors * poles).T).T
    result.gain_matrix = B.T @ (A - np.real(closed_loop)) / np.sum(B * B)
    result.computed_poles = poles
    del result.X
    return result


_OWN_CODE = """
    filtfilt sosfiltfilt lfiltic lfilter_zi sosfilt_zi detrend savgol_filter savgol_coeffs hilbert hilbert2 envelope resample
    resample_poly decimate deconvolve wiener czt zoom_fft welch periodogram csd coherence spectrogram stft istft lombscargle
    vectorstrength ShortTimeFFT.stft ShortTimeFFT.stft_detrend ShortTimeFFT.spectrogram ShortTimeFFT.istft
    ShortTimeFFT._fft_func ShortTimeFFT._ifft_func CZT CZT.__call__ ZoomFFT freqz freqs freqz_sos sosfreqz freqz_zpk freqs_zpk
    group_delay tf2zpk zpk2tf tf2sos zpk2sos sos2tf sos2zpk tf2ss ss2tf zpk2ss ss2zpk normalize bilinear_zpk lp2lp lp2hp lp2bp
    lp2bs lp2lp_zpk lp2hp_zpk lp2bp_zpk lp2bs_zpk StateSpace TransferFunction ZerosPolesGain lti dlti cont2discrete
    abcd_normalize lsim impulse step freqresp bode dlsim dimpulse dstep dfreqresp dbode firwin firwin2 firls firwin_2d
    minimum_phase iirnotch iirpeak iircomb gammatone butter cheby1 cheby2 ellip bessel iirfilter cheb1ap cheb2ap ellipap
    kaiser_beta kaiser_atten get_window chirp gausspulse sawtooth square sweep_poly gauss_spline czt_points invres invresz
    cspline1d qspline1d whittaker_henderson
"""
_PEAK_ADVICE = "x[peaks] with peaks = scipy.signal.find_peaks(x.value)[0]"
_SPLINE_ADVICE = "scipy.ndimage.map_coordinates, or spline_filter, with the mode 'mirror'"
_ORDER_ADVICE = "a plain specification for the order, and nodes for the design of that order"
_ROOT_ADVICE = "functions of the polynomial coefficients (the grouping of equal roots has no derivative)"

POLICY = Policy(
    module="scipy.signal",
    smooth=dict.fromkeys(("convolve", "correlate", "fftconvolve", "oaconvolve"), "in1 in2"),
    replacements={
        "lfilter": lfilter,
        "sosfilt": sosfilt,
        "order_filter": order_filter,
        "medfilt": medfilt,
        "medfilt2d": medfilt2d,
        "convolve2d": convolve2d,
        "correlate2d": correlate2d,
        "choose_conv_method": choose_conv_method,
        "upfirdn": upfirdn,
        "bilinear": bilinear,
        "place_poles": place_poles,
    },
    own_code=frozenset(_OWN_CODE.split()),
    always_replaced=frozenset(  # their arguments are systems that may be created from nodes
        {"lsim", "impulse", "step", "freqresp", "bode", "dlsim", "dimpulse", "dstep", "dfreqresp", "dbode", "cont2discrete"}
    ),
    plain=frozenset({"BadCoefficients", "buttap", "besselap", "correlation_lags", "max_len_seq", "unit_impulse"}),
    unsupported={
        "ShortTimeFFT": "a plain window, hop and fs (the signal may be a node in all methods)",
        **dict.fromkeys(("find_peaks", "find_peaks_cwt", "peak_prominences", "peak_widths"), _PEAK_ADVICE),
        **dict.fromkeys(("argrelextrema", "argrelmax", "argrelmin"), _PEAK_ADVICE),
        **dict.fromkeys(
            ("buttord", "cheb1ord", "cheb2ord", "ellipord", "kaiserord", "iirdesign", "band_stop_obj"), _ORDER_ADVICE
        ),
        **dict.fromkeys(("residue", "residuez", "unique_roots"), _ROOT_ADVICE),
        **dict.fromkeys(
            ("cspline1d_eval", "qspline1d_eval", "cspline2d", "qspline2d", "spline_filter", "sepfir2d"), _SPLINE_ADVICE
        ),
        **dict.fromkeys(("symiirorder1", "symiirorder2"), "scipy.signal.lfilter of the signal, and of the flipped result"),
        **dict.fromkeys(("check_COLA", "check_NOLA"), "the plain numbers of the window (the result is a boolean)"),
        "closest_STFT_dual_window": "a plain window",
        "findfreqs": "plain coefficients, or your own frequencies",
        "remez": "scipy.signal.firls or firwin2 (the Remez exchange is an iteration)",
    },
)
