"""Statements of manuals whose rows are not statements: pieces of running text, or words that share a fact."""
