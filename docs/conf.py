"""How the documentation is built: strictly, offline, from the Markdown beside this file and the docstrings of ../src."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "ext")]  # this checkout, whatever is installed

from attlas import __version__  # noqa: E402

project = "attlas"
author = "The attlas authors"
copyright = author
release = version = __version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "mathml",
    "bibliography",
    "public_names",
    "doors",
    "rooms",
    "gallery",
    "curves",
    "scrollable",
    "verdicts",
]
exclude_patterns = ["_build", "ext"]
nitpicky = True
default_role = "code"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # docstrings say what an argument may be, and shapes, which types do not
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False
napoleon_custom_sections = [(name, "params_style") for name in ("Attributes", "Raises")]  # types are words, not links

viewcode_line_numbers = True

html_theme = "furo"
pygments_style, pygments_dark_style = "default", "github-dark"
html_title = f"attlas {version}"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["attlas.css"]
html_copy_source = False
html_show_sourcelink = False


def setup(app):
    """Leave out the methods that scikit-learn writes for its routing of metadata, whose words link into its own pages."""
    if "sphinx.ext.autodoc" in app.extensions:  # a build of single pages may leave the reference out
        app.connect(
            "autodoc-skip-member",
            lambda _app, _what, name, *_: True if name.startswith("set_") and name.endswith("_request") else None,
        )
