"""List the words of NetHack."""
