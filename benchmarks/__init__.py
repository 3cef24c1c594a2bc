"""What a checkout runs as `python -m benchmarks.<name>`: training, evaluation, speed, tables and measurements."""
