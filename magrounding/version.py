"""The version of the package, which packing and CITATION.cff follow."""

__version__ = "0.3.0"
