"""The tables of options in the documentation are those of the package."""

from pathlib import Path

import pytest

from tools import option_tables

PAGE = Path(__file__).parents[1] / "docs" / "options.md"


def test_the_page_is_what_the_program_writes():
    assert PAGE.read_text(encoding="utf-8") == option_tables.page(), "python -m tools.option_tables > docs/options.md"


@pytest.mark.parametrize("section", ["Environments", "Networks", "Learners", "Run"])
def test_every_option_has_a_meaning(section):
    for title, cls in option_tables.sections()[section]:
        for name in option_tables.options_of(cls):
            assert option_tables.meanings(cls).get(name), f"{name} of {title}"
