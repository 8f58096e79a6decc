"""A drop-in replacement of HIPS/autograd.

After ``import autodiff.compat.autograd``, ``import autograd``, its submodules and ``import autograd_gamma`` find this package,
whether autograd is installed or not. Import it before any module that imports autograd. ``autograd.numpy`` is NumPy itself.
Programs run unchanged as ``python -m autodiff.compat.autograd script.py`` or ``python -m autodiff.compat.autograd -m module``,
and tests as ``pytest -p autodiff.compat.autograd_plugin``.
"""

from __future__ import annotations

import os
import runpy
import sys

from .hips import accept_iterators, add_value_attribute, finder, modules

USAGE = "usage: python -m autodiff.compat.autograd (script.py | -m module) [argument ...]"


def install() -> None:
    """Register the modules in ``sys.modules``. The import of this module calls it; further calls have no effect.

    Raises
    ------
    ImportError
        If autograd itself was imported before, because its functions would be mixed with those of this package.
    """
    ours = modules()
    for name in ("autograd", "autograd_gamma"):
        if sys.modules.get(name, ours[name]) is not ours[name]:
            raise ImportError(
                f"{name} was imported before autodiff.compat.autograd. Import autodiff.compat.autograd first, or run the program "
                "by python -m autodiff.compat.autograd"
            )
    sys.modules.update(ours)
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
        accept_iterators()
        add_value_attribute()


def main(arguments: list[str]) -> None:
    """Run a script or a module, whose imports of autograd find this package.

    Parameters
    ----------
    arguments : list of str
        The file of a script, or ``-m`` and the name of a module, and the arguments of the program.
    """
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        raise SystemExit(USAGE)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")


install()

if __name__ == "__main__":
    main(sys.argv[1:])
