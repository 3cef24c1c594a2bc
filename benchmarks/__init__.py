"""Commands of a checkout, `python -m benchmarks.<name>`: training, evaluation, speed, tables and measurements."""
