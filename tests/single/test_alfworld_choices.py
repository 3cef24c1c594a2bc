"""What ALFWorld offers and shows where there is more than it has room for."""

from types import SimpleNamespace

import pytest

from magrounding.errors import ConfigurationError
from magrounding.single.alfworld import ALFWorld, package
from magrounding.single.alfworld import env as module
from magrounding.single.alfworld.env import choices_of, things_shown
from magrounding.single.alfworld.options import MAX_COMMANDS, MAX_ITEMS


def test_few_commands_are_all_offered_but_look():
    assert choices_of(("examine desk 1", "go to bed 1", "look")) == ("examine desk 1", "go to bed 1")


def test_what_only_examines_is_left_out_first():
    many = tuple(sorted([*(f"examine thing {i:03d}" for i in range(30)), *(f"take thing {i:03d}" for i in range(58))]))
    offered = choices_of(many, ["thing 001"])
    assert len(offered) == MAX_COMMANDS
    assert offered == many[28:]


def test_then_the_way_back_the_last_visited_first():
    goes, takes = [f"go to shelf {i:02d}" for i in range(55)], [f"take mug {i}" for i in range(8)]
    offered = choices_of((*goes, *takes), ["shelf 03", "shelf 50", "shelf 07", "shelf 20"])
    assert offered == tuple(each for each in (*goes, *takes) if each not in {goes[50], goes[7], goes[20]})


def test_then_what_changes_nothing_and_at_last_what_opens_something():
    goes, opens = [f"go to shelf {i:02d}" for i in range(40)], [f"open drawer {i:02d}" for i in range(20)]
    takes = [f"take mug {i:02d}" for i in range(30)]
    every = (*(f"close safe {i}" for i in range(5)), *goes, "help", "inventory", *opens, *takes)
    kept = [(*goes[:10], *opens, *takes), (*goes[:4], *opens, *takes)]
    assert choices_of(every) == kept[0]
    for verb in ("clean", "cool", "heat", "move", "put", "slice", "use"):
        needed = tuple(f"{verb} thing {i}" for i in range(6))
        assert set(choices_of((*needed, *every))) == {*needed, *kept[1]}
    assert len(choices_of(tuple(f"take thing {i:03d}" for i in range(70)))) == MAX_COMMANDS


def test_a_grid_shows_what_is_spoken_of_rather_than_other_receptacles():
    room, mugs = [("cabinet", str(k)) for k in range(1, 53)], [("mug", str(k)) for k in range(1, 9)]
    assert things_shown(room[:3], [room[1], *mugs]) == ([*room[:3], *mugs], 0)
    assert things_shown(room, room) == (room[:MAX_ITEMS], 12)
    assert things_shown(room, [room[-1], *mugs]) == ([*room[:31], room[-1], *mugs], 20)


@pytest.mark.parametrize("error", [ValueError, RecursionError, SystemExit])
def test_a_game_that_the_engine_cannot_play_is_refused(monkeypatch, error):
    def fail():
        raise error

    monkeypatch.setattr(package, "require", lambda: None)
    monkeypatch.setattr(module, "Engine", lambda: SimpleNamespace(start=lambda game: fail(), close=lambda: None))
    monkeypatch.setattr(module.Games, "data", lambda games, number: {})
    env = ALFWorld().make_env()
    with pytest.raises(ConfigurationError):
        env.reset(seed=0)
