"""Jobs: commands of this package, each with a folder of its own, several at a time, here or on a cluster."""
