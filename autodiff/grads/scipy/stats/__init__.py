"""Rules of ``scipy.stats``."""
