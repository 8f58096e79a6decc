"""Rules of operations of ``scipy.sparse``."""
