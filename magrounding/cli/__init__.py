"""The commands: each parses, calls the package and prints. Nothing in the package imports them."""
