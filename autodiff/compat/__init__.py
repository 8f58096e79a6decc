"""Stand-ins for other packages. Nothing imports them; each is imported by the user who wants it.

``import autodiff.compat.autograd`` makes the names of HIPS/autograd mean this package.
"""
