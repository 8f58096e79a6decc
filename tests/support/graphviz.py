"""Skip marks of tests that need Graphviz or Matplotlib, which are optional dependencies."""

from __future__ import annotations

import importlib.util

import pytest

from compgraph.view import can_render

needs_pygraphviz = pytest.mark.skipif(not importlib.util.find_spec("pygraphviz"), reason='pip install "compgraph[pictures]"')
needs_graphviz = pytest.mark.skipif(not can_render(), reason='pip install "compgraph[pictures]"')
has_images = can_render() and all(importlib.util.find_spec(name) for name in ("matplotlib", "PIL"))
needs_images = pytest.mark.skipif(not has_images, reason='pip install "compgraph[examples]"')
