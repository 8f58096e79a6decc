"""Rules of ``scipy.ndimage``."""
