"""Replacements of other packages. Nothing imports them; users import each explicitly.

``import autodiff.compat.autograd`` makes the names of HIPS/autograd mean this package.
"""
