"""A game of one's own on the base class: two agents, several steps, a mask, a limit, a score."""

import pytest

import magrounding as mg
from magrounding.envs.checks import check_parallel_env
from magrounding.envs.own_game import OwnGame
from magrounding.errors import ConfigurationError
from magrounding.spec import EPISODE, SCORE, EnvSpec, Field, FixedActions, Mask, Text

WORDS = ("", "go", "north", "south", "now")


class Doors(OwnGame):
    """A door is called; who is through it may only wait. Both through: won."""

    def __init__(self, outcome="won", sentence="go {}"):
        text = Text("rule", (2, 3), 0, len(WORDS) - 1, shared=True, lifetime=EPISODE)
        fields = text, Field("through", (1,), 0, 1), Mask("action_mask", (3,))
        actions = FixedActions(("north", "south", "wait"))
        super().__init__(EnvSpec(fields, 2, actions, WORDS, max_cycles=3, outcome=outcome, capabilities=frozenset()))
        self.sentence = sentence

    def start(self, rng):
        self.door, self.through, self.score = int(rng.integers(2)), [False, False], 0.0

    def play(self, actions):
        for agent, action in enumerate(actions):
            self.through[agent] |= action == self.door
        self.score = sum(self.through)
        return self.through, all(self.through), all(self.through)

    def look(self, agent):
        mask = [0, 0, 1] if self.through[agent] else [1, 1, 1]
        rule = [self.sentence.format(WORDS[2 + self.door]), "now"]
        return {"rule": rule, "through": self.through[agent], "action_mask": mask}


def test_it_is_a_whole_env_and_a_batch():
    check_parallel_env(Doors)
    vec = mg.vectorize(Doors, 4)
    observation, _ = vec.reset(seed=0)
    assert observation["rule"].shape == (4, 2, 3)


def test_games_end_by_themselves_or_at_the_limit():
    game = Doors()
    seen, infos = game.reset(seed=1)
    assert seen["agent_0"]["rule"].tolist() == [[1, 2 + game.door, 0], [4, 0, 0]]
    right, wrong = game.door, 1 - game.door
    assert infos["agent_0"]["document"] == infos["agent_1"]["document"]
    _, rewards, over, late, infos = game.step({"agent_0": right, "agent_1": wrong})
    assert (rewards["agent_0"], over["agent_0"], late["agent_0"], "won" in infos["agent_0"]) == (
        1.0,
        False,
        False,
        False,
    )
    _, _, _, _, infos = game.step({"agent_0": right, "agent_1": 2})
    assert (infos["agent_0"]["illegal"], "illegal" in infos["agent_1"]) == (True, False)
    _, _, over, late, infos = game.step({"agent_0": 2, "agent_1": 2})
    assert (over["agent_1"], late["agent_1"], infos["agent_1"]["won"], game.agents) == (False, True, False, [])
    game.reset()
    _, _, over, late, infos = game.step(dict.fromkeys(game.agents, game.door))
    assert (over["agent_1"], late["agent_1"], infos["agent_1"]["won"]) == (True, False, True)


def test_seeds_and_scores():
    one, other = Doors(), Doors(outcome=SCORE)
    doors = []
    for game in (one, other):
        game.reset(seed=7)
        doors.append([game.door, *(game.reset() and game.door for _ in range(20))])
    assert doors[0] == doors[1]
    assert other.step({"agent_0": other.door, "agent_1": 2})[4]["agent_0"]["score"] == 1.0


class Wrong(Doors):
    """Answers something else than its spec says."""

    def __init__(self, seen=None, answer=None):
        super().__init__()
        self.seen, self.answer = seen or {}, answer

    def look(self, agent):
        return {**super().look(agent), **self.seen}

    def play(self, actions):
        return super().play(actions) if self.answer is None else self.answer


@pytest.mark.parametrize(
    "wrong",
    [
        *({"seen": {"through": shown}} for shown in (0.5, [1, 1], 70_000, None)),
        *({"answer": answer} for answer in (1.0, (1.0, True, True), ([1.0, 1.0], True), ([1.0], True, True))),
    ],
)
def test_other_answers_than_the_spec_says_are_refused(wrong):
    def play():
        game = Wrong(**wrong)
        game.reset(seed=0)
        game.step(dict.fromkeys(game.agents, 2))

    with pytest.raises(ConfigurationError):
        play()


@pytest.mark.parametrize("sentence", ["fly {}", "go {} now go"])
def test_words_that_cannot_be_are_refused(sentence):
    with pytest.raises(ConfigurationError):
        Doors(sentence=sentence).reset(seed=0)
