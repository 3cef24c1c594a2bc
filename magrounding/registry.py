"""Which environments and agents there are. A new one is one new file and one entry here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from magrounding.errors import ConfigurationError, choose

if TYPE_CHECKING:
    from magrounding.envs.parallel import WorldEnv
    from magrounding.envs.world import BatchedWorld
    from magrounding.vector import WorldVectorEnv


def load(entry_point: str) -> Any:
    """The object that `package.module:name` points at."""
    module, name = entry_point.split(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class EnvEntry:
    """One environment id.

    Attributes:
        id: what `make` takes.
        world: entry point of a function `(num_envs, *, num_threads, <options with defaults>) -> BatchedWorld`.
        stage_option: the option that names a stage or task.
        stages: its values.
        curriculum: the stages a curriculum goes through by default, in order.
        evaluation_sets: name → the options (split, size) that make it.
        note: a sentence for reports, on what their readers would else wonder about.
        reading_set: the one on which agents are also given wrong manuals.
        oracle: entry point of a scripted team that reads the world's state: the ceiling of reports.
        published: entry point of the papers' results (`envs.published.PublishedResults`).
        published_ablations: entry point of what the papers say of lesser models, a tuple of such dictionaries.
        multi_agent: whether it takes `agents`; the others are for one agent, and Gymnasium knows them too. Stated here
            so that nobody has to import the world to know.
    """

    id: str
    world: str
    stage_option: str
    stages: tuple[str, ...]
    curriculum: tuple[str, ...]
    evaluation_sets: Mapping[str, Mapping[str, Any]]
    oracle: str | None = None
    published: str | None = None
    published_ablations: str | None = None
    multi_agent: bool = False
    reading_set: str = "eval"
    note: str = ""

    @cached_property
    def factory(self) -> Callable[..., BatchedWorld]:
        return load(self.world)

    @cached_property
    def options(self) -> dict[str, Any]:
        """Option → default."""
        parameters = inspect.signature(self.factory).parameters.values()
        return {p.name: p.default for p in parameters if p.name not in ("num_envs", "num_threads")}

    def make_world(self, num_envs: int, num_threads: int = 1, **options: Any) -> BatchedWorld:
        for name in options:
            choose(f"option of {self.id}", name, tuple(self.options))
        if not isinstance(num_envs, int) or num_envs < 1:
            raise ConfigurationError(f"num_envs must be a positive integer, got {num_envs!r}")
        return self.factory(num_envs, num_threads=num_threads, **options)


_RTFM_SETS = {
    "train": {"split": "train"},
    "eval": {"split": "eval"},
    "eval_new": {"split": "eval_new"},
    "eval_10x10": {"split": "eval", "size": 10},
    "eval_paraphrase": {"split": "eval_paraphrase"},
}

_RTFM_NOTE = (
    "Games of one number have the same maps in every split: who knows no word by heart wins the same ones in train, "
    "eval and eval_new."
)

_RTFM_TASKS = (
    "simple_stationary_single_monster",
    "simple_stationary_single_item",
    "simple_stationary",
    "simple",
    "simple_nl",
    "stationary",
    "stationary_nl",
    "group",
    "nl",
)

_MESSENGER_SETS = {name: {"split": name} for name in ("train", "val", "test")}

_ENVS = (
    EnvEntry(
        id="rtfm",
        world="magrounding.envs.rtfm.tasks:make_rtfm",
        stage_option="task",
        stages=_RTFM_TASKS,
        curriculum=("simple_stationary", "simple", "group", "nl"),
        evaluation_sets=_RTFM_SETS,
        oracle="magrounding.envs.rtfm.oracle:Oracle",
        published="magrounding.envs.rtfm.published:RTFM",
        note=_RTFM_NOTE,
    ),
    EnvEntry(
        id="rock_paper_scissors",
        world="magrounding.envs.rtfm.tasks:make_rock_paper_scissors",
        stage_option="task",
        stages=("permutation", "released", "new_edge", "new_node"),
        curriculum=("permutation",),
        evaluation_sets={"train": {"split": "train"}, "eval": {"split": "eval"}},
        oracle="magrounding.envs.rtfm.oracle:Oracle",
    ),
    EnvEntry(
        id="ma_rtfm",
        world="magrounding.envs.rtfm.tasks:make_ma_rtfm",
        stage_option="stage",
        stages=("s1", "s2", "s3", "s4", "s5"),
        curriculum=("s1", "s2", "s3", "s4", "s5"),
        evaluation_sets=_RTFM_SETS,
        oracle="magrounding.envs.rtfm.oracle:Oracle",
        published="magrounding.envs.rtfm.published:MA_RTFM",
        published_ablations="magrounding.envs.rtfm.published:MA_RTFM_ABLATIONS",
        multi_agent=True,
        note=_RTFM_NOTE,
    ),
    EnvEntry(
        id="messenger",
        world="magrounding.envs.messenger.stages:make_messenger",
        stage_option="stage",
        stages=("s1", "s2", "s3"),
        curriculum=("s1", "s2", "s3"),
        evaluation_sets={**_MESSENGER_SETS, "test_seen_dynamics": {"split": "test_seen_dynamics"}},
        oracle="magrounding.envs.messenger.oracle:Oracle",
        published="magrounding.envs.messenger.published:MESSENGER",
        reading_set="test",
    ),
    EnvEntry(
        id="ma_messenger",
        world="magrounding.envs.messenger.stages:make_ma_messenger",
        stage_option="stage",
        stages=("s1", "s2", "s3", "s4"),
        curriculum=("s1", "s2", "s3", "s4"),
        evaluation_sets=_MESSENGER_SETS,
        oracle="magrounding.envs.messenger.oracle:Oracle",
        published="magrounding.envs.messenger.published:MA_MESSENGER",
        multi_agent=True,
        reading_set="test",
    ),
)

ENVS: dict[str, EnvEntry] = {entry.id: entry for entry in _ENVS}


@dataclass(frozen=True)
class AgentEntry:
    """One agent id.

    Attributes:
        id: what `--agent` takes.
        policy: entry point of a function `(spec, **options) -> Policy`.
        options: what this id sets among the policy's options.
        env_options: what it needs of the environment.
        built_on: id of the agent whose network it extends: a preset's options of that network are for this one too.
        algorithm: the only one that trains it; None: any that trains policies.
    """

    id: str
    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    env_options: Mapping[str, Any] = field(default_factory=dict)
    built_on: str | None = None
    algorithm: str | None = None


_TXT2PI = "magrounding.agents.txt2pi:make_txt2pi"
_BASELINE = "magrounding.agents.baselines:make_baseline"
_SIR = "magrounding.agents.sir:make_sir"
_SIR_PARTS = ("state", "local_conv", "entity_attn", "bert")

_ENDI = {
    "endi_num": {"regularizer": "num"},
    "endi_dis": {"regularizer": "dis"},
    "endi_sup": {"regularizer": "dis", "modelling": False},
    "endi_reg": {"regularizer": "none"},
}


def _endi(id: str, grounding: str) -> AgentEntry:
    """EnDi on a grounding module; on txt2π, the default and the paper's for RTFM, it is called by its bare name."""
    policy, options = "magrounding.endi.agent:make_endi", _ENDI[id]
    if grounding == "txt2pi":
        return AgentEntry(id, policy, options, built_on=grounding)
    return AgentEntry(f"{id}_{grounding}", policy, {**options, "grounding": grounding}, built_on=grounding)


_AGENTS = (
    AgentEntry("relread", "magrounding.agents.relread:make_relread"),
    AgentEntry("txt2pi", _TXT2PI),
    AgentEntry("txt2pi_no_task_attn", _TXT2PI, {"task_attention": False}),
    AgentEntry("txt2pi_no_vis_attn", _TXT2PI, {"visual_attention": False}),
    AgentEntry("txt2pi_no_text_mod", _TXT2PI, {"text_modulation": False}),
    AgentEntry("film", _BASELINE, {"modulate": True}),
    AgentEntry("conv", _BASELINE, {"modulate": False}),
    AgentEntry("sir", _SIR),
    *(AgentEntry(f"sir_{part}", _SIR, {part: True}) for part in _SIR_PARTS),
    AgentEntry("sir_all", _SIR, dict.fromkeys(_SIR_PARTS, True)),
    AgentEntry("emma", "magrounding.agents.emma:make_emma"),
    AgentEntry("emma_game_id", "magrounding.agents.emma:make_game_id", env_options={"game_id": True}),
    AgentEntry("qmix", "magrounding.agents.qmix:make_qmix", algorithm="qmix"),
    AgentEntry(
        "qmix_relread", "magrounding.agents.qmix_relread:make_qmix_relread", built_on="relread", algorithm="qmix"
    ),
    *(_endi(id, grounding) for grounding in ("txt2pi", "emma", "relread") for id in _ENDI),
)

AGENTS: dict[str, AgentEntry] = {entry.id: entry for entry in _AGENTS}


def env_entry(id: str) -> EnvEntry:
    """The entry of an environment id; ConfigurationError for an unknown one."""
    return ENVS[choose("env", id, tuple(ENVS))]


def agent_entry(id: str) -> AgentEntry:
    """The entry of a learnt agent's id; ConfigurationError for an unknown one."""
    return AGENTS[choose("agent", id, tuple(AGENTS))]


def make(id: str, *, render_mode: str | None = None, **options: Any) -> WorldEnv:
    """Make one game as a PettingZoo ParallelEnv.

    Args:
        id: environment id, e.g. "ma_rtfm".
        render_mode: None, "ansi" or "rgb_array".
        options: options of the environment, see its documentation; ConfigurationError names an unknown one.
    """
    from magrounding.envs.parallel import WorldEnv

    entry = env_entry(id)
    return WorldEnv(entry.make_world(1, **options), id=id, options=options, render_mode=render_mode)


def make_vec(id: str, num_envs: int, *, num_threads: int = 1, copy: bool = False, **options: Any) -> WorldVectorEnv:
    """Make a batch of games that restart by themselves.

    Args:
        id: environment id.
        num_envs: B.
        num_threads: threads that share the rows; the episodes do not depend on it.
        copy: return fresh arrays instead of buffers that the next step overwrites.
        options: options of the environment.
    """
    from magrounding.vector import WorldVectorEnv

    return WorldVectorEnv(env_entry(id).make_world(num_envs, num_threads, **options), id, options, copy=copy)
