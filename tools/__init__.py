"""Tools for those who work on magrounding; no part of the package."""
