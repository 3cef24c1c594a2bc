"""What the fuzz calls, read from the package, and what it calls it with."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from hypothesis import strategies as st

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.envs.gymnasium_vector import make_gymnasium_vec
from magrounding.envs.single_agent import make_single_agent
from magrounding.extensions.clients import for_tensors
from magrounding.extensions.clients.nested import nested
from magrounding.pretrained import find_run, pretrained_names
from magrounding.registry import agent_entry, algorithm_entry, env_entry
from magrounding.simulators.spaces import spec_of
from magrounding.teams.actor import has_expert, make_expert
from magrounding.teams.evaluate import ShuffledManuals, evaluate
from magrounding.teams.scripted import RandomTeam
from magrounding.teams.team import mixed_team
from tests.simulators.games import Walk

WORLDS = ("rtfm", "ma_rtfm", "rock_paper_scissors", "messenger", "ma_messenger")
SHORT = {"max_cycles": 3}
TEAM = "pretrained:rtfm-nl"

LOWER = (evaluate, mixed_team, make_expert, has_expert, make_single_agent, make_policy, spec_of, find_run)
FUNCTIONS = {
    **{name: getattr(mg, name) for name in mg.__all__ if inspect.isroutine(getattr(mg, name)) and name != "by_split"},
    **{function.__name__: function for function in (*LOWER, pretrained_names)},
    "env_entry": env_entry,
    "agent_entry": agent_entry,
    "algorithm_entry": algorithm_entry,
}
"""All functions at the top of the package, and those below it that its documentation names."""


@dataclass
class Subject:
    """An object whose methods are called.

    Attributes:
        make: makes one, and what else arguments may be drawn from: `actions`, `obs`, `memory`, `info`.
        shared: it is costly, so one serves all calls; `close` is not called.
    """

    make: Callable[[], tuple[Any, dict[str, Any]]]
    shared: bool = False
    _kept: list = field(default_factory=list)

    def get(self):
        if not self.shared:
            return self.make()
        if not self._kept:
            self._kept.append(self.make())
        return self._kept[0]


def _single(id, state, **options):
    env = mg.make(id, render_mode="ansi", **SHORT, **options)
    good: dict[str, Any] = {"actions": dict.fromkeys(env.possible_agents, 0)}
    if state != "fresh":
        good["obs"], good["info"] = env.reset(seed=0)
    if state == "ended":
        while env.agents:
            env.step(dict.fromkeys(env.agents, 0))
    if state == "closed":
        env.close()
    return env, good


def _many(make, state):
    vec = make()
    good: dict[str, Any] = {"actions": np.zeros((vec.num_envs, vec.num_agents), np.int64)}
    if state != "fresh":
        good["obs"], good["info"] = vec.reset(seed=0)
        if hasattr(vec, "snapshot"):
            good["snapshot"] = vec.snapshot()
    if state == "closed":
        vec.close()
    return vec, good


@cache
def _team():
    return mg.load_team(TEAM)


def _loaded(many):
    team = _team()
    vec = mg.make_vec("rtfm", 2, task="nl") if many else None
    obs, info = vec.reset(seed=0) if vec else mg.make("rtfm", task="nl").reset(seed=0)
    return team, {"obs": obs, "info": info, "memory": team.initial_memory(2 if many else 1)}


def _at_random():
    return RandomTeam(1, 5), {"obs": mg.make("rtfm").reset(seed=0)[0], "memory": None}


def _shuffled():
    team, good = _loaded(True)
    return ShuffledManuals(team), good


def _expert(make):
    vec = make()
    obs, info = vec.reset(seed=0)
    return make_expert(vec), {"obs": obs, "info": info}


def _gym():
    env = make_single_agent("rtfm", render_mode="ansi", **SHORT)
    env.reset(seed=0)
    return env, {"action": 0}


def _adapted(adapt):
    env = adapt(mg.make("ma_rtfm", **SHORT))
    env.reset(seed=0)
    return env, {"actions": dict.fromkeys(env.possible_agents, 0)}


def _gym_vec():
    env = make_gymnasium_vec("rtfm", 2, **SHORT)
    env.reset(seed=0)
    return env, {"actions": np.zeros(2, np.int64)}


NEEDED = {"babyai": "minigrid", "nethack": "nle"}
"""Subject → the module of its simulator."""

SUBJECTS = {
    **{
        f"{id}, {state}": Subject(lambda id=id, state=state: _single(id, state))
        for id in ("rtfm", "ma_rtfm", "ma_messenger")
        for state in ("fresh", "played", "ended", "closed")
    },
    **{
        f"batch of {id}, {state}": Subject(lambda id=id, state=state: _many(lambda: mg.make_vec(id, 2, **SHORT), state))
        for id in ("rtfm", "ma_messenger")
        for state in ("fresh", "played", "closed")
    },
    **{
        f"serial, {state}": Subject(lambda state=state: _many(lambda: mg.vectorize(Walk, 2), state))
        for state in ("fresh", "played", "closed")
    },
    "processes": Subject(lambda: _many(lambda: mg.vectorize(Walk, 2, workers=1), "played"), shared=True),
    "babyai": Subject(lambda: _single("babyai", "played")),
    "nethack": Subject(lambda: _single("nethack", "played")),
    "touchdown": Subject(lambda: _single("touchdown", "played")),
    "gymnasium": Subject(_gym),
    "gymnasium, batch": Subject(_gym_vec),
    "for tensors": Subject(lambda: _adapted(lambda env: for_tensors(env, flatten=True, dead="padded"))),
    "nested": Subject(lambda: _adapted(nested)),
    "team, batch": Subject(lambda: _loaded(True)),
    "team, single game": Subject(lambda: _loaded(False)),
    "team at random": Subject(_at_random),
    "team with shuffled manuals": Subject(_shuffled),
    "oracle": Subject(lambda: _expert(lambda: mg.make_vec("rtfm", 2))),
    "bot": Subject(lambda: _expert(lambda: mg.vectorize(Walk, 2))),
    "env entry": Subject(lambda: (mg.ENVS["rtfm"], {})),
    "envs": Subject(lambda: (mg.ENVS, {})),
}
"""Name → an object that the package hands to its users, in each of its states."""


GOOD: dict[str, dict[str, Any]] = {
    "evaluate": {"options": SHORT},
    "vectorize": {"options": {}, "id": "rtfm"},
    "make_policy": {"spec": mg.ENVS["rtfm"].describe()},
}
"""Function → right values of parameters whose names mean something else elsewhere."""


INSIDE = {"aux", "marks", "diagnose", "relate_words", "set_last_actions"}
"""Methods of players that evaluations and sessions call, with what the player itself returned."""


def methods(thing) -> list[str]:
    """The public methods of an object that the package itself defines, but for those that only it calls."""
    found = []
    for name in dir(type(thing)):
        method = getattr(type(thing), name, None)
        if (
            not name.startswith("_")
            and name not in INSIDE
            and inspect.isfunction(method)
            and method.__module__.startswith("magrounding")
        ):
            found.append(name)
    return found


ARRAYS = [
    np.zeros(()),
    np.zeros(0),
    np.zeros((0, 0), np.int64),
    np.array([1, 0]),
    np.array([[0], [1]]),
    np.array([[9], [-1]]),
    np.array([[0.5], [np.nan]]),
    np.array([True, False]),
    np.array(["a", "b"]),
    np.array([None, {}], object),
    np.array([2**63], np.uint64),
    np.zeros((2, 1, 6, 6, 4), np.int16),
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]),
    np.array(["2020-01-01"], "M8[D]"),
    np.ma.masked_array([1, 2], [True, False]),
]
ODD = [None, True, False, -1, 0, 1, 2, 7, 2**31, 2**63, 10**30, -(2**63), 10**400]
ODD += [0.0, 0.5, 1.0, -1.5, float("nan"), float("inf"), 1e308, 1j, "", "\0", "a", "0", "rtfm", "../..", "a/b", "🤖"]
ODD += ["agent_0", "agent_9", "x:y", "magrounding:make", "pretrained:", "pretrained:../x", b"", b"rtfm"]
ODD += [
    (),
    [],
    {},
    set(),
    [1],
    [[0], [1, 2]],
    [None],
    ("rtfm",),
    {"agent_0": 0},
    {0: 0},
    {"a": {}},
    {None: None},
    {1: {}},
]
ODD += [object(), int, len, Ellipsis, range(3), slice(2), Path(), Path("/nowhere"), lambda: None, lambda *_: 3]
ODD += [np.int64(1), np.bool_(True), np.float32(2), np.str_("rtfm"), *ARRAYS]

junk = st.sampled_from(ODD) | st.integers(-3, 40) | st.text(max_size=4) | st.floats(width=32)


def _register(kind, *names):
    return junk.map(lambda value: kind(*names[:-1], value)) | junk.map(lambda value: kind(value, *names[1:]))


entries = (
    _register(mg.EnvEntry, "fuzzed", "magrounding.envs.rtfm.games:Rtfm")
    | _register(mg.AgentEntry, "fuzzed", "magrounding.agents.relread.network:RelRead")
    | _register(mg.AlgorithmEntry, "fuzzed", "magrounding.training.ppo:PPOConfig")
    | _register(mg.PresetEntry, "fuzzed", "rtfm", "nowhere:nothing")
)

BY_NAME = {
    "id": st.sampled_from([*WORLDS, "babyai", "relread", "txt2pi", "emma", "sir"]),
    "env": st.sampled_from(WORLDS),
    "source": st.sampled_from([TEAM, "/", ".", "pretrained:none", "README.md"]),
    "value": st.sampled_from(WORLDS),
    "entry": entries,
    "num_envs": st.integers(1, 3),
    "episodes": st.integers(1, 2),
    "workers": st.just(0),
    "num_threads": st.integers(1, 2),
    "timeout": st.just(5.0),
    "seed": st.none() | st.integers(0, 2**61),
    "copy": st.booleans(),
    "render_mode": st.sampled_from([None, "ansi", "ansi_full", "rgb_array"]),
    "agent": st.sampled_from(["agent_0", "agent_1"]),
    "make_env": st.sampled_from([Walk, lambda: gymnasium.make("CartPole-v1"), lambda: None, lambda: 3]),
    "spec": st.sampled_from([None, *(mg.ENVS[id].describe() for id in ("rtfm", "ma_messenger"))]),
    "team": st.just(RandomTeam(1, 5)),
    "teams": st.builds(lambda: [_team()]),
    "vec": st.builds(lambda: mg.make_vec("rtfm", 2)),
    "manual": st.sampled_from(["true", "reassigned", "of another game"]),
    "stage": st.sampled_from([None, "nl"]),
    "device": st.just("cpu"),
    "rows": st.sampled_from([None, [0], np.array([0, 1])]),
    "group": st.sampled_from([None, 0, 1]),
    "marks": st.none() | st.just(np.zeros((1, 6, 6), np.int8)),
    "options": st.none(),
    "alive": st.just(np.ones((2, 1), np.bool_)),
}
"""Right values of parameters by name; there is nothing that only junk is drawn for but by this omission."""

OPTIONS = ["agents", "size", "task", "stage", "split", "max_cycles", "sight", "occupants", "death", "drop_mode"]
OPTIONS += ["chase_range", "resample_text", "shuffle_manual", "manual", "corpus", "game_id", "level", "fast_view"]
OPTIONS += ["channels", "similarity", "reach", "width", "heads", "document_hidden", "language_model", "nothing"]

FEW = {"workers": st.sampled_from([True, -1, 2**40, 1.0, "x", None, [1]])}
"""Parameters whose junk is chosen, since some of all junk is right and starts processes."""


@st.composite
def corrupted(draw, value):
    """A right value with one part of it wrong."""
    if isinstance(value, Mapping) and value:
        key = draw(st.sampled_from(sorted(value, key=str)))
        change = draw(st.sampled_from(["lose", "replace", "rename", "corrupt"]))
        if change == "lose":
            return {k: v for k, v in value.items() if k != key}
        if change == "rename":
            return {(f"{k}_" if k == key else k): v for k, v in value.items()}
        return {**value, key: draw(junk) if change == "replace" else draw(corrupted(value[key]))}
    if isinstance(value, np.ndarray) and value.dtype.kind in "iufb":
        changes = {
            "float": lambda: value.astype(float),
            "large": lambda: value + np.ones((), value.dtype) * 99,
            "negative": lambda: np.asarray(value, np.int64) - 9,
            "shorter": lambda: value[:-1] if value.ndim else value,
            "flat": lambda: value.ravel(),
            "deeper": lambda: value[None],
            "object": lambda: value.astype(object),
            "list": lambda: value.tolist(),
            "nan": lambda: np.full(value.shape, np.nan),
        }
        return changes[draw(st.sampled_from(sorted(changes)))]()
    return draw(junk)


@st.composite
def arguments(draw, function, good):
    """(positional, keyword) arguments of a call that Python itself lets through; mostly one of them is wrong."""
    positional, keyword = [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            names = draw(st.lists(st.sampled_from(OPTIONS), max_size=2, unique=True))
            keyword.update({option: draw(junk) for option in names if option not in keyword})
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        required = parameter.default is parameter.empty
        if not required and draw(st.integers(0, 2)) == 0:
            if parameter.kind is not parameter.KEYWORD_ONLY and not keyword:
                positional.append(parameter.default)
            continue
        how = draw(st.sampled_from(["right", "right", "junk", "corrupted"]))
        right = st.just(good[name]) if name in good else BY_NAME.get(name, junk)
        value = draw(right) if how != "junk" else draw(FEW.get(name, junk))
        if how == "corrupted" and name not in FEW:
            value = draw(corrupted(value))
        if parameter.kind is parameter.KEYWORD_ONLY:
            keyword[name] = value
        else:
            positional.append(value)
    return positional, keyword
