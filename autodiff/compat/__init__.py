"""Drop-in replacements of other packages, which users import explicitly.

``import autodiff.compat.autograd`` redirects ``import autograd`` to this package.
"""
