"""Tests that only `make test-full` runs: they repeat at length what others show in brief."""

import os

import pytest

FULL = "MAGROUNDING_FULL"


def in_the_full_suite(why):
    """The mark of a test that takes long."""
    return pytest.mark.skipif(not os.environ.get(FULL), reason=f"{why}: set {FULL}=1, or `make test-full`")


def in_full(many, few):
    """How many of something the full suite tries, and how many every suite does."""
    return many if os.environ.get(FULL) else few
