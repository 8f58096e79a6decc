"""Rules of the ufuncs of ``scipy.special``, by family; `entering` says how they are entered."""
