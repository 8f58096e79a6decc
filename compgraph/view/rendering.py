"""DOT -> SVG, PNG or PDF: by an installed ``dot``, or else by the renderer in pygraphviz's wheel."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys

# The renderer in pygraphviz's wheel is a library. It is run in a process of its own because it writes warnings about
# fonts to stderr, cannot be interrupted, and would end this process if it crashed.
BUNDLED_RENDERER = """
import sys
import pygraphviz
graph = pygraphviz.AGraph()
graph.from_string(sys.stdin.buffer.read().decode())
sys.stdout.buffer.write(graph.draw(format=sys.argv[1], prog="dot"))
"""


def can_render() -> bool:
    """Whether Graphviz is installed, as its program ``dot`` or in pygraphviz's wheel."""
    return shutil.which("dot") is not None or importlib.util.find_spec("pygraphviz") is not None


def render(source: str, format: str) -> bytes:
    """The picture of a DOT text: a file's bytes, in one of Graphviz's formats (``"svg"``, ``"png"``, ``"pdf"``, ``"json"``).

    Raises
    ------
    ModuleNotFoundError
        If there is no Graphviz.
    """
    if shutil.which("dot") is not None:
        import graphviz

        picture: bytes = graphviz.pipe("dot", format, source.encode(), quiet=True)
        return picture
    if not can_render():
        raise ModuleNotFoundError(
            f"{'the layout' if format == 'json' else format.upper()} is made by Graphviz, which is not installed: pip install "
            "pygraphviz, or install Graphviz's program dot (apt install graphviz, brew install graphviz). Without it a graph is "
            "drawn as an HTML page: visualize_at(node, 'graph.html')"
        )
    # -P and PYTHONPATH: modules are found where this process finds them, and not in the current folder.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-c", BUNDLED_RENDERER, format]
    done = subprocess.run(command, input=source.encode(), capture_output=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"pygraphviz could not draw the graph: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
