"""Campaign: trials of what docs/promises.md promises, drawn at random, for an hour."""
