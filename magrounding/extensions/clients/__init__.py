"""Clients: adapters for other libraries' learners, one a file."""
