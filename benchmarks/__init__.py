"""Commands, run from a checkout as `python -m benchmarks.<name>`: each parses, calls the package and prints."""
