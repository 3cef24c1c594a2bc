"""List the words of ScienceWorld, and collect its gold paths."""
