"""A pytest plugin, ``-p autodiff.compat.autograd_plugin``: imports of autograd in tests find this package."""

from __future__ import annotations

from . import autograd

autograd.install()


def pytest_report_header() -> str:
    """The line in the header of a run."""
    return "autograd: autodiff.compat.autograd"
