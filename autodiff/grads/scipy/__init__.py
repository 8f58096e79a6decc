"""Rules of SciPy's functions, in rooms named as SciPy's own."""
