"""Sphinx: guides and public docstrings as a site with search; the command is in CONTRIBUTING.

It lies beside the guides, because Read the Docs builds the folder of this file.
"""

from kgtrec._version import __version__

project = "kgtrec"
copyright = "the kgtrec authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
myst_enable_extensions = ["attrs_inline"]  # the width of an image
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # files of examples have languages of their own
autodoc_default_options = {
    "members": True,
    "imported-members": True,
    "inherited-members": "Exception,UserWarning,Mapping,tuple",  # all but those of these classes
}
autodoc_member_order = "bysource"  # the order of __all__
autodoc_typehints = "none"  # numpydoc's sections say them
numpydoc_show_class_members = False
html_theme = "furo"
