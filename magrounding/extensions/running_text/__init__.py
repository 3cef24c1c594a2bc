"""Running text: what finds the statements of manuals whose rows are not statements."""
