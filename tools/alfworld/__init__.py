"""Make games of ALFWorld."""
