"""The documentation site: what its pages take from the code (`docs/conf.py` is the Sphinx project)."""
