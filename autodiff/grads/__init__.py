"""Every derivative rule."""
from . import elementwise, linear_algebra, networks, reductions, shaping
