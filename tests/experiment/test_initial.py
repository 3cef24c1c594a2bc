"""A run that begins with another's weights goes on from them as a second stage would, and refuses those of others."""

from dataclasses import replace

import pytest
import torch

from magrounding.errors import CheckpointError, ConfigurationError, MagroundingError
from magrounding.experiment.beginning import check_run, load_initial
from magrounding.experiment.config import make_config, read_config
from magrounding.teams.loading import load_team
from tests.experiment.tiny_runs import learn, phases_of, tiny_settings, weights_of

BRIEF = {"phases": phases_of(60), "every": None, "final_sets": ("eval",)}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("initial") / "base"
    learn(tiny_settings(stages=("s1",), **BRIEF), folder)
    return folder


def test_it_learns_what_a_second_stage_learns(base, tmp_path):
    both = tiny_settings(stages=("s1", "s3"), carry_optimizer=False, **BRIEF)
    learn(both, tmp_path / "both")
    second = tiny_settings(stages=("s3",), carry_optimizer=False, initial=str(base), **BRIEF)
    learn(second, tmp_path / "second")
    assert torch.equal(weights_of(tmp_path / "second"), weights_of(tmp_path / "both"))
    assert not torch.equal(weights_of(tmp_path / "second"), weights_of(base, "s1"))
    (segment,) = read_config(tmp_path / "second").resolve().segments
    assert segment.learnt_by == f"reinforcement alone, from the weights of {base}"
    assert f"* initial: {base}" in (tmp_path / "second" / "report.md").read_text()


@pytest.mark.parametrize("changes", [{"agents": 3}, {"share_parameters": True}, {"network": {}}])
def test_weights_of_other_teams_are_refused(base, changes):
    with pytest.raises(CheckpointError):
        check_run(tiny_settings(stages=("s3",), initial=str(base), **BRIEF, **changes))


def test_a_run_that_is_not_there_or_of_no_use_is_refused(tmp_path):
    with pytest.raises(CheckpointError):
        check_run(tiny_settings(initial=str(tmp_path / "nothing")))
    with pytest.raises(ConfigurationError):
        check_run(replace(make_config("ma_rtfm", preset="quick_qmix"), initial="pretrained:ma_rtfm-s1-2agents"))


@pytest.mark.parametrize(
    ("agent", "above", "where"), [("txt2pi", "endi_dis", ""), ("relread", "endi_dis_relread", "reader.")]
)
def test_endi_begins_with_its_grounding_module(agent, above, where, tmp_path):
    learn(tiny_settings(stages=("s1",), agent=agent, network={}, **BRIEF), tmp_path)
    plan = tiny_settings(stages=("s1",), agent=above, network={}, initial=str(tmp_path), **BRIEF).resolve()
    networks = [plan.config.make_network() for _ in range(plan.config.agents)]
    load_initial(plan, networks)
    for network, before in zip(networks, load_team(tmp_path).policies, strict=True):
        own = network.state_dict()
        assert where or not any(own[name].any() for name in ("policy.weight", "value.weight", "modelling.0.weight"))
        assert all(own[where + k].equal(v) for k, v in before.state_dict().items() if not k.startswith("head."))


def test_one_agent_learns_beside_the_frozen_others_of_a_team(base, tmp_path):
    learn(tiny_settings(stages=("s1", "s3"), initial=str(base), against=str(base), **BRIEF), tmp_path)
    before, after = weights_of(base, "s1"), weights_of(tmp_path)
    assert torch.equal(after[1], before[1])
    assert not torch.equal(after[0], before[0])
    assert "agent 0 alone" in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(
    "changes", [{"agent": "txt2pi", "network": {}}, {"network": {}}, {"agents": 3}, {"share_parameters": True}]
)
def test_others_of_another_kind_are_refused(base, changes):
    with pytest.raises(MagroundingError):
        check_run(tiny_settings(against=str(base), **BRIEF, **changes))
