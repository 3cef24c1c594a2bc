"""Worlds, and the faces they show: PettingZoo, Gymnasium, vector. Nothing here knows of torch."""
