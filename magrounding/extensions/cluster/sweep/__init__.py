"""Sweeps: runs that differ in a few options, side by side, and what these options make of the result."""
