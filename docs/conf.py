"""The documentation site (`make docs`). Pages are Markdown (MyST); generated parts come from `tools.documentation`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from magrounding import __version__

project = "magrounding"
author = "The magrounding developers"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "tools.documentation.directives",
    "tools.documentation.site",
]
exclude_patterns = ["_build", "reports/**/README.md"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other projects, whose pages are not asked over a network
suppress_warnings = ["ref.python"]  # names of types
smartquotes = False  # "--out" is no dash

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 5
nb_execution_mode = "cache"  # a notebook runs anew where it has changed
nb_execution_in_temp = True  # notebooks train, and a run never overwrites another
nb_execution_timeout = -1  # a machine may be busy
nb_execution_raise_on_error = True
nb_execution_show_tb = True

napoleon_use_ivar = True  # fields of a class are described once, in its docstring
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"  # fields are no parameters once more
autodoc_default_options = {"members": True, "undoc-members": False}
autodoc_preserve_defaults = True
default_role = "code"

html_theme = "furo"
html_title = f"magrounding {version}"
html_math_renderer = "mathml"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
copybutton_exclude = ".linenos, .gp, .go"
