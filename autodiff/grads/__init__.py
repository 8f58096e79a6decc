"""Every derivative rule."""
from . import elementwise, reductions, shaping, linear_algebra
