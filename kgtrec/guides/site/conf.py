"""Sphinx: guides and public docstrings as a site with search; the command is in CONTRIBUTING."""

from kgtrec._version import __version__

project = "kgtrec"
copyright = "the kgtrec authors"
version = release = __version__
root_doc = "site/index"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # files of examples have languages of their own
autodoc_default_options = {"members": True, "imported-members": True, "inherited-members": False}
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # numpydoc's sections say them
numpydoc_show_class_members = False
html_theme = "alabaster"
html_theme_options = {"description": "Evaluation of knowledge-graph completion"}
