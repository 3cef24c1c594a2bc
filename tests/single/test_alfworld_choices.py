"""What ALFWorld offers and shows where there is more than it has room for, on an engine of this file."""

import copy
import re

import numpy as np
import pytest

from magrounding.errors import ConfigurationError
from magrounding.single.alfworld import ALFWorld, package
from magrounding.single.alfworld import env as module
from magrounding.single.alfworld.env import Moment, choices_of, things_shown
from magrounding.single.alfworld.options import FEEDBACK_WORDS, MAX_COMMANDS, MAX_ITEMS, TOKENIZER

AGENT = "agent_0"
PLACES = [*(f"cabinet {number}" for number in range(1, 52)), "desk 1"]
THINGS = [f"mug {number}" for number in range(1, 9)]
GOAL = "put a mug in cabinet."


class Hall:
    """Takes the engine's place: 51 cabinets, eight mugs on a desk, one of which has to come into the first."""

    def start(self, game):
        self.here, self.held = "", ""
        self.lying = {PLACES[-1]: list(THINGS)}
        self.won = False
        seen = ", ".join(f"a {place}" for place in PLACES)
        return self.say(f"-= Welcome =-\n\nYou are here. You see {seen}.\n\nYour task is to: {GOAL}")

    def step(self, command):
        place, thing = self.here, re.search(r"mug \d+", command)
        if command.startswith("go to "):
            self.here = command.removeprefix("go to ")
            seen = ", ".join(f"a {each}" for each in self.lying.get(self.here, ())) or "nothing"
            return self.say(f"You arrive at {self.here}. On the {self.here}, you see {seen}.")
        if command.startswith("take "):
            self.held = thing[0]
            self.lying[place].remove(self.held)
        elif command.startswith("move "):
            self.lying.setdefault(place, []).append(self.held)
            self.held, self.won = "", place == PLACES[0]
        return self.say(f"You {command}.")

    def say(self, feedback):
        lying = self.lying.get(self.here, ()) if self.here else ()
        commands = ["help", "inventory", "look", *(f"go to {place}" for place in PLACES if place != self.here)]
        commands += [f"examine {self.here}"] * bool(self.here) + [f"examine {thing}" for thing in lying]
        if self.held:
            commands += [f"move {self.held} to {self.here}"] * bool(self.here)
        else:
            commands += [f"take {thing} from {self.here}" for thing in lying]
        return Moment(feedback, tuple(sorted(commands)), self.won)

    def close(self):
        """It holds nothing."""


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setattr(package, "require", lambda: None)
    monkeypatch.setattr(module, "Engine", Hall)
    monkeypatch.setattr(module.Games, "data", lambda games, number: {})
    return lambda **options: ALFWorld(**options).make_env("ansi_full")


def go(env, command):
    choices = env.render().split("\n")
    (number,) = (line.split()[0] for line in choices if line.lstrip("0123456789 ") == command)
    return env.step({AGENT: int(number)})


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


def test_what_takes_something_is_offered_in_a_room_of_52_receptacles_and_the_rest_is_counted(make):
    env = make()
    _, infos = env.reset(seed=0)
    assert infos[AGENT]["text"]["choices"] == sorted(["help", "inventory", *(f"go to {place}" for place in PLACES)])
    assert (env.left_out, env.things_left_out) == (0, 12)
    go(env, "go to cabinet 7")
    assert env.left_out == 0
    observations, _, _, _, infos = go(env, "go to desk 1")
    choices = infos[AGENT]["text"]["choices"]
    assert {f"take {thing} from desk 1" for thing in THINGS} <= {*choices}
    assert "go to cabinet 7" not in choices
    assert env.left_out == 2 + 51 + 9 + 8 - MAX_COMMANDS
    assert sorted(choices) == choices
    shown = [TOKENIZER.vocabulary.decode(item) for item in observations[AGENT]["grid"][:, 0]]
    assert {"desk 1", *THINGS} <= {*shown}
    assert env.things_left_out == 12 + 12 + 20
    assert env.words_left_out > 0  # the first answer names them all
    _, _, _, _, infos = go(env, "go to cabinet 9")
    assert "go to cabinet 7" in infos[AGENT]["text"]["choices"]
    copied = copy.deepcopy(env)
    assert (copied.left_out, copied.things_left_out) == (env.left_out, env.things_left_out)
    assert copied.render() == env.render()


def test_the_expert_wins_there(make):
    env = make(max_cycles=80)
    env.reset(seed=0)
    while env.agents:
        infos = env.step({AGENT: int(env.best_actions()[0].argmax())})[4][AGENT]
    assert infos["won"]
    assert "expert_failed" not in infos


def test_words_that_are_cut_are_counted(make):
    env = make()
    observations, infos = env.reset(seed=0)
    said = infos[AGENT]["text"]["feedback"]
    assert env.words_left_out == TOKENIZER.count(said) - FEEDBACK_WORDS
    np.testing.assert_array_equal(observations[AGENT]["feedback"], TOKENIZER.row(said, FEEDBACK_WORDS))


@pytest.mark.parametrize("error", [ValueError("no goal"), RecursionError("too deep"), SystemExit("no such type")])
def test_a_game_that_the_engine_cannot_play_is_named(make, monkeypatch, error):
    def fail(hall, game):
        raise error

    env = make()
    monkeypatch.setattr(Hall, "start", fail)
    with pytest.raises(ConfigurationError, match=rf"the game .* cannot be played \({type(error).__name__}: {error}\)"):
        env.reset(seed=0)
