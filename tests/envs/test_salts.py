"""Salts name documents, and texts are sorted by them: a new option must not move those of games that do without it."""

from dataclasses import dataclass, replace

import pytest

from magrounding.envs.compiled import salt_of
from magrounding.envs.messenger.games import MaMessenger, Messenger
from magrounding.envs.rtfm import ontology
from magrounding.envs.rtfm import world as rtfm
from magrounding.envs.rtfm.games import MaRtfm, RockPaperScissors, Rtfm

GAMES = {
    10019530636463092: Rtfm(task="nl", resample_text=True, max_cycles=1000),
    57306700631702885: MaRtfm(stage="s5", agents=3, split="eval_new", death="individual", max_cycles=1000),
    52833529780814511: MaRtfm(stage="s6", sight=2.5, max_cycles=1000),
    15374602087434411: RockPaperScissors(max_cycles=1000),
    24794863180037641: Messenger(stage="s3"),
    68635329286985255: Messenger(stage="s2", layout="stream"),
    68937954174450941: MaMessenger(stage="s4", agents=3, split="train_sc"),
}


@dataclass(frozen=True, kw_only=True)
class BrightRtfm(MaRtfm):
    brightness: float = 1


@dataclass(frozen=True, kw_only=True)
class BrightMessenger(MaMessenger):
    brightness: float = 1


@dataclass(frozen=True)
class Task(ontology.Task):
    brightness: float = 1


def salt(game):
    return game.make_world(1)._rules.salt


@pytest.mark.parametrize("known", GAMES)
def test_salts_are_as_they_were(known):
    assert salt(GAMES[known]) == known


@pytest.mark.parametrize(("game", "bright"), [(MaRtfm, BrightRtfm), (MaMessenger, BrightMessenger)])
def test_an_option_more_counts_only_where_it_is_not_at_its_default(game, bright):
    assert salt(bright(agents=2)) == salt(game(agents=2)) != salt(bright(agents=2, brightness=0.5))


def test_so_does_a_field_more_of_a_task():
    before, now = (salt_of(each(moving=True), rtfm._TASK, 1) for each in (ontology.Task, Task))
    assert before == now != salt_of(replace(Task(moving=True), brightness=0.5), rtfm._TASK, 1)
