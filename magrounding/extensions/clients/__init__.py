"""Adapters for other people's libraries, each tested against the real one; `docs/clients.md` has a program for each."""

from magrounding.extensions.clients.tensors import for_tensors, unflatten

__all__ = ["for_tensors", "unflatten"]
