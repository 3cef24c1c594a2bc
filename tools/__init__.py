"""What a checkout runs as `python -m tools.<name>` to write files of the documentation."""
