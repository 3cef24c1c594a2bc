"""QMIX (Rashid et al. 2018): networks of the agents' values, with and without reading, and what mixes the values."""
