"""How Sphinx builds the documentation: ``sphinx-build -W --keep-going -b html docs docs/_build/html``."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import latex2mathml.converter
import numpy as np
from docutils.nodes import SkipNode

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the reference is that of this copy, whatever is installed

project = "compgraph"
author = "The compgraph developers"
copyright = author
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_copybutton"]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "autolink"  # a link where the name is documented, else italics
nitpicky = True
# Names in backquotes and under See Also are parameters, or NumPy's, as often as our own; those are no links.
nitpick_ignore_regex = [("py:obj", ".*"), ("py:class", r"(numpy|collections)\..*")]
nitpick_ignore_regex += [("py:class", r"compgraph\.(storage|context|values)\..*|autodiff\..*\._\w+")]  # bases that are not public

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # prompts and outputs are not copied
copybutton_prompt_is_regexp = True
nb_execution_mode = "off"  # the notebooks are stored with their outputs

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say more
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc_validation_checks: set[str] = set()

html_theme = "furo"
html_title = f"compgraph {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sphinx = False
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which a browser forbids for files
pygments_style = "default"


def without_numpys(app: Any, what: str, name: str, obj: Any, *rest: Any) -> tuple[str, None] | None:
    """Leave out the arguments of ``np.ndarray``: nodes are not made that way."""
    return ("", None) if isinstance(obj, type) and issubclass(obj, np.ndarray) else None


def copy_notebooks() -> None:
    """Copy the notebooks into the folder of the documentation, where Sphinx reads them."""
    folder = ROOT / "docs" / "notebooks"
    folder.mkdir(exist_ok=True)
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        shutil.copyfile(path, folder / path.name)


def render_formula(translator: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers draw without a script."""
    display = "block" if node.tagname == "math_block" else "inline"
    formula = latex2mathml.converter.convert(node.astext(), display=display)
    translator.body.append(f'<div class="math">{formula}</div>' if display == "block" else formula)
    raise SkipNode


def setup(app: Any) -> None:
    """Connect the above to Sphinx, and copy the notebooks."""
    copy_notebooks()
    app.add_html_math_renderer("mathml", (render_formula, None), (render_formula, None))
    app.connect("autodoc-process-signature", without_numpys)
