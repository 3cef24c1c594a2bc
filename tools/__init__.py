"""Programs for developers; none is in the wheel."""
