"""What a statement is where rows of a manual are none: pieces cut out of running text, or words that share a fact."""
