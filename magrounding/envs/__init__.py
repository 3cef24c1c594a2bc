"""Worlds, and their adapters: PettingZoo, Gymnasium, vector. Nothing here imports torch."""
