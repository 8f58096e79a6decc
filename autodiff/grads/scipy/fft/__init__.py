"""Rules of ``scipy.fft``."""
