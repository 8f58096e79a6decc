"""``scipy.signal``: convolutions and filters have rules; SciPy's Python code that calls them runs on nodes."""

from __future__ import annotations

from ..policy import Policy
from . import filters

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
_PEAKS = "x[peaks] with peaks = scipy.signal.find_peaks(x.value)[0]"
_SPLINE = "scipy.ndimage.map_coordinates, or spline_filter, with the mode 'mirror'"
_ORDER = "a plain specification for the order, and nodes for the design of that order"
_ROOTS = "functions of the polynomial coefficients (the grouping of equal roots has no derivative)"

POLICY = Policy(
    module="scipy.signal",
    smooth=dict.fromkeys(("convolve", "correlate", "fftconvolve", "oaconvolve"), "in1 in2"),
    replacements={
        "lfilter": filters.lfilter,
        "sosfilt": filters.sosfilt,
        "order_filter": filters.order_filter,
        "medfilt": filters.medfilt,
        "medfilt2d": filters.medfilt2d,
        "convolve2d": filters.convolve2d,
        "correlate2d": filters.correlate2d,
        "choose_conv_method": filters.choose_conv_method,
        "upfirdn": filters.upfirdn,
        "bilinear": filters.bilinear,
        "place_poles": filters.place_poles,
    },
    own_code=frozenset(_OWN_CODE.split()),
    always_replaced=frozenset(  # their arguments are systems that may be created from nodes
        {"lsim", "impulse", "step", "freqresp", "bode", "dlsim", "dimpulse", "dstep", "dfreqresp", "dbode", "cont2discrete"}
    ),
    plain=frozenset({"BadCoefficients", "buttap", "besselap", "correlation_lags", "max_len_seq", "unit_impulse"}),
    unsupported={
        "ShortTimeFFT": "a plain window, hop and fs (the signal may be a node in all methods)",
        **dict.fromkeys(("find_peaks", "find_peaks_cwt", "peak_prominences", "peak_widths"), _PEAKS),
        **dict.fromkeys(("argrelextrema", "argrelmax", "argrelmin"), _PEAKS),
        **dict.fromkeys(("buttord", "cheb1ord", "cheb2ord", "ellipord", "kaiserord", "iirdesign", "band_stop_obj"), _ORDER),
        **dict.fromkeys(("residue", "residuez", "unique_roots"), _ROOTS),
        **dict.fromkeys(("cspline1d_eval", "qspline1d_eval", "cspline2d", "qspline2d", "spline_filter", "sepfir2d"), _SPLINE),
        **dict.fromkeys(("symiirorder1", "symiirorder2"), "scipy.signal.lfilter forwards, and backwards on the flipped signal"),
        **dict.fromkeys(("check_COLA", "check_NOLA"), "the plain numbers of the window (the result is a boolean)"),
        "closest_STFT_dual_window": "a plain window",
        "findfreqs": "plain coefficients, or your own frequencies",
        "remez": "scipy.signal.firls or firwin2 (the Remez exchange is an iteration)",
    },
)
