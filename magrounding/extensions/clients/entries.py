"""Programs import adapters by themselves: nothing is entered."""


def register() -> None:
    """Enter nothing."""
