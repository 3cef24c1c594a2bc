"""Adapters for simulators that are not ours, one a folder."""
