"""Settings of the documentation site, which ``python -m ci.docs`` builds."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import daskdl  # noqa: E402 - found through the line above

project = "daskdl and nowcast"
author = "the daskdl developers"
copyright = author
release = version = daskdl.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinxcontrib.mermaid",
]
exclude_patterns = ["_build", "jupyter_execute"]
# The first is what autosummary writes.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 3

# Tutorials run while the site is built, with the pictures that they draw; an error ends the build.
nb_execution_mode = os.environ.get("DASKDL_DOCS_EXECUTION", "force")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
if nb_execution_mode == "off":
    suppress_warnings = ["myst-nb.lexer"]  # the kernel would tell the language

autodoc_typehints = "none"  # the docstrings have shapes, dtypes and units beside the types
autosummary_generate = True
autosummary_ignore_module_all = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "daskdl and nowcast"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "navbar_persistent": ["search-button"],  # an icon: with a field the bar takes two lines
    "footer_start": ["copyright"],
    "footer_end": [],
}


def leave_out(app, what, name, obj, skip, options):
    """Tell autodoc to leave out what a class has from others, such as scikit-learn's requests."""
    module = getattr(obj, "__module__", None) or "daskdl"
    return skip or not module.startswith(("daskdl", "nowcast"))


def constructor(app, what, name, obj, options, signature, returns):
    """Give a class the signature of its ``__init__``, without types: Module has a ``__new__``."""
    if what != "class" or obj.__init__ is object.__init__:
        return None
    try:
        parameters = list(inspect.signature(obj.__init__).parameters.values())[1:]
    except (TypeError, ValueError):
        return None
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return str(inspect.Signature(bare)), returns


def setup(app):
    """Connect what is here with Sphinx."""
    app.connect("autodoc-process-signature", constructor)
    app.connect("autodoc-skip-member", leave_out)
