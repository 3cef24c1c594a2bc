"""Learners, curricula and checkpoints. Nothing here knows a particular world."""
