"""Rules of SciPy's functions, in packages named like SciPy's."""
