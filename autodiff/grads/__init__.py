"""Every derivative rule, as ``opname_grad(adjoint, node) -> adjoints of the operands``.

Each module holds a family of operations, and what it names ``*_grad`` is public here. Editors and type checkers read the
names in ``__init__.pyi``, which ``python -m compgraph._stubs`` writes.
"""

from importlib import import_module
from pkgutil import iter_modules

_families = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
_rules = {name: rule for family in _families for name, rule in vars(family).items() if name.endswith("_grad")}
globals().update(_rules)
__all__ = sorted(_rules)
