"""Faces for other people's libraries, each tested against the real one; `docs/clients.md` has a program for each."""
