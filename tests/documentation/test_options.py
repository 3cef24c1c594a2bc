"""Tables of options are made of the dataclasses; pages name no option that does not exist."""

import inspect
import re

import gymnasium
import pytest

import magrounding as mg
from magrounding.agents.policy import CONTRAST
from magrounding.extensions.clients import for_tensors
from magrounding.registry import ENVS
from magrounding.spec import EnvSpec
from magrounding.teams.team import Team
from tests.documentation.pages import PAGES, text
from tests.documentation.pages import name as path_of
from tools.documentation import options


@pytest.mark.parametrize("section", ["Environments", "Networks", "Learners", "Run", "Language models"])
def test_every_option_has_a_meaning(section):
    for title, cls in options.sections()[section]:
        table = options.table(cls)
        for name in options.options_of(cls):
            assert options.meanings(cls).get(name), f"{name} of {title}"
            assert f"| `{name}` |" in table


def known():
    """Names behind which pages may have "=": options, arguments of what Python calls, fields of entries."""
    names = {name for tables in options.sections().values() for _, cls in tables for name in options.options_of(cls)}
    for entry in ENVS.values():
        names |= set(entry.options)
    for called in (*vars(mg).values(), Team.act, EnvSpec, for_tensors, gymnasium.make_vec):
        if inspect.isfunction(called) or (inspect.isclass(called) and not issubclass(called, Exception)):
            names |= set(inspect.signature(called).parameters)
    return names | {
        "name",
        "path",
        "games",
        CONTRAST,
        "autoreset_mode",
    }  # "network.name=value"; of an entry point of Gymnasium


@pytest.mark.parametrize("page", PAGES, ids=path_of)
def test_a_page_names_options_that_exist(page):
    content = text(page)
    named = set(re.findall(r"\b(?:env|network|learner|evaluation|phases)\.(?:[\w*]+\.)*(\w+)=", content))
    named |= set(re.findall(r"`([a-z_]+)=[^`=]*`", content))
    unknown = {name for name in named if name.isidentifier()} - known()
    assert unknown == set()
