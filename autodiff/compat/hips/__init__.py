"""The public names of HIPS/autograd and autograd-gamma, with their signatures and conventions, on top of `autodiff`.

Importing this package changes nothing; `autodiff.compat.autograd` enters its modules in ``sys.modules``.
"""

from .arrays import accept_iterators
from .boxes import add_value_attribute
from .modules import finder, modules

__all__ = ["accept_iterators", "add_value_attribute", "finder", "modules"]
