"""Presets and settings: what is refused, what can be changed, and that a file gives back what it was given."""

from dataclasses import replace

import pytest

from magrounding.agents.building import freeze, make_policy
from magrounding.agents.policy import REASONS
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import make_config, parse_config
from magrounding.experiment.phase import Promotion
from magrounding.experiment.presets import default_preset, find_preset
from magrounding.registry import ENVS, PRESETS, load
from magrounding.storage import read_json, write_json
from magrounding.teams.actor import has_expert
from tests.experiment.tiny_runs import IMITATION, LEARNER, TINY, phases_of, tiny_settings

ALL = [(entry.name, entry.env) for entry in PRESETS.values()]
SOON = {"*": Promotion(steps=60)}


@pytest.mark.parametrize(
    "phases",
    [
        {"*": ()},
        phases_of(SOON, LEARNER, LEARNER),
        phases_of(SOON, IMITATION, IMITATION),
        phases_of(SOON, IMITATION, LEARNER, IMITATION),
        {**phases_of(SOON), **phases_of({"s4": Promotion(steps=1)}, IMITATION, IMITATION)},
    ],
    ids=["none", "two of rewards", "two of imitation", "three", "in one stage"],
)
def test_a_stage_has_one_phase_of_a_kind(phases):
    with pytest.raises(ConfigurationError):
        replace(TINY, phases=phases)


def test_a_stage_that_a_preset_has_no_phases_for_is_refused():
    with pytest.raises(ConfigurationError):
        tiny_settings(stages=("s1", "s3"), phases=phases_of(dict.fromkeys(("s1", "s2"), SOON["*"])))


@pytest.mark.parametrize(("name", "env"), ALL)
def test_every_preset_makes_settings_that_survive_their_file(tmp_path, name, env):
    for share in (False, True):
        settings = replace(make_config(env, preset=name, seeds=(0, 7)), share_parameters=share)
        write_json(tmp_path / "config.json", settings.as_dict())
        assert parse_config(read_json(tmp_path / "config.json")) == settings
        alone = share or settings.agent == "qmix"  # which is one network for all agents, asked or not
        assert settings.num_learners == (1 if alone else settings.agents)
    assert replace(settings, share_parameters=False).evaluation == load(PRESETS[f"{name} for {env}"].preset).evaluation
    assert settings.stages == (load(PRESETS[f"{name} for {env}"].preset).stages or ENVS[env].curriculum)
    for segment in settings.resolve().segments:
        assert segment.games.spec
        until = segment.phase.until
        assert until.steps or until.win_rate
    assert not settings.imitates or has_expert(env)


@pytest.mark.parametrize("env", ENVS)
def test_worlds_can_lie_and_the_set_for_it_exists(env):
    settings = make_config(env, preset=default_preset(env))
    entry = settings.entry
    assert entry.evaluation.reading_set in entry.evaluation.sets
    if entry.evaluation.rules_text == "manual":
        assert settings.resolve().wrong_manuals == ("reassigned", "of another game")
        assert entry.evaluation.rules_text in entry.describe().shared_texts
    else:  # another game's mission is no lie, but may be shown as well
        assert "reassigned" not in settings.resolve().wrong_manuals


def test_only_the_presets_own_agent_is_frozen():
    settings = make_config("messenger", preset="paper")
    frozen = {stage: phase.frozen for stage, phase in settings.walk()}
    assert frozen == {"s1": (), "s2": ("symbols", "key", "reader"), "s3": ("symbols", "key", "reader")}
    spec = settings.resolve().stages["s2"].games.spec
    policy = make_policy("emma", spec)
    freeze(policy, frozen["s2"])
    learns = {name.split(".")[0] for name, p in policy.named_parameters() if p.requires_grad}
    stays = {name.split(".")[0] for name, p in policy.named_parameters() if not p.requires_grad}
    assert stays == {"symbols", "key", "key_attention", "reader"}
    assert {"value", "value_attention"} < learns
    assert not any(phase.frozen for _, phase in make_config("messenger", "relread", preset="paper").walk())
    assert any(phase.frozen for _, phase in make_config("messenger", preset="quick").walk())
    alone, several = (
        {name for _, phase in make_config(env, f"endi_dis_{on}", preset="quick").walk() for name in phase.frozen}
        for env, on in (("messenger", "relread"), ("ma_messenger", "emma"))
    )
    assert "reader.symbols" in alone
    assert several == {"emma.symbols", "emma.key", "emma.reader"}


@pytest.mark.parametrize(
    ("env", "agent", "weight"), [("ma_messenger", "endi_dis_emma", 1.0), ("ma_rtfm", "endi_dis", 0.1)]
)
def test_published_weights_of_the_division_depend_on_the_learner(env, agent, weight):
    config = make_config(env, agent, preset="paper")
    for stage, phase in config.walk():
        learner = phase.learner.make_learner(
            config.make_network(), config.resolve().stages[stage].games.spec, phase.num_envs, 0
        )
        assert (learner.weights["modelling"], learner.weights["division"]) == (1.0, weight)


def test_what_is_frozen_of_emma_is_frozen_within_endi():
    config = make_config("ma_messenger", "endi_dis_emma", preset="paper")
    frozen = {stage: phase.frozen for stage, phase in config.walk()}
    parts = ("emma.symbols", "emma.key", "emma.reader")
    assert frozen == {"s1": (), **dict.fromkeys(config.stages[1:], parts)}
    policy = config.make_network()
    freeze(policy, parts)
    stays = {name.rsplit(".", 1)[0] for name, p in policy.named_parameters() if not p.requires_grad}
    assert stays == {"emma.symbols", "emma.key", "emma.key_attention.score", "emma.reader.words"}
    assert all(p.requires_grad for p in policy.queries.parameters())  # the second table of symbols
    for alone in (make_config("messenger", "endi_dis_emma", preset="paper"), make_config("messenger", preset="paper")):
        assert alone.of_stage("s2")[0].frozen == ("symbols", "key", "reader")
        freeze(alone.make_network(), alone.of_stage("s2")[0].frozen)


@pytest.mark.parametrize("env", ["messenger", "ma_messenger"])
def test_published_heads_of_emma_are_tied(env):
    on_emma = ("emma", "emma_game_id", "endi_num_emma", "endi_sup_emma")
    for agent in on_emma:
        config = make_config(env, agent, preset="paper")
        assert config.network == {"tied_heads": True}
        assert config.make_network().config.tied_heads
        assert make_config(env, agent, preset="quick_rl").network == {}
    assert make_config(env, "relread", preset="paper").network == {}


@pytest.mark.parametrize(
    ("env", "agent"),
    [
        *((env, agent) for env in ("rtfm", "ma_rtfm", "rock_paper_scissors") for agent in ("txt2pi", "film", "conv")),
        ("ma_rtfm", "endi_dis"),
    ],
)
def test_an_agent_may_have_a_preset_of_its_own(env, agent):
    preset = find_preset("quick", env, agent)
    assert preset.agent == agent
    assert find_preset("quick", env).phases != preset.phases or env == "rock_paper_scissors"
    config = make_config(env, agent, 2 if env == "ma_rtfm" else None, "quick")
    assert config.network == preset.network
    assert make_policy(agent, config.resolve().stages[config.stages[0]].games.spec, **config.network)
    ramps = [phase.ramps for _, phase in config.walk()]
    assert ramps[0]["omission"].at(config.of_stage(config.stages[0])[0].until.steps) == 0
    assert all(each["omission"].last == 0 for each in ramps if each)


@pytest.mark.parametrize("env", ["rtfm", "ma_rtfm"])
def test_sir_has_a_preset_that_it_reads_by_and_is_as_released_under_others(env):
    config = make_config(env, "sir_state", preset="quick")
    assert config.make_network().needs == REASONS
    assert next(phase for _, phase in config.walk()).ramps["omission"].last == 0
    assert not make_config(env, "sir", preset="paper").make_network().needs
