"""Trackers: services that show curves of runs, one a file."""
