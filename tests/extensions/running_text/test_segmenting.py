"""Segmenters learn before anything else does, are kept with the weights, and stand in front of trained teams."""

from functools import partial
from itertools import pairwise

import pytest
import torch

from magrounding.cli.command import CommandLine
from magrounding.envs.make import make_vec
from magrounding.errors import ConfigurationError
from magrounding.experiment.checkpoint import pack_learners, pack_session, unpack_learners, unpack_session
from magrounding.experiment.stage import StageSession
from magrounding.extensions.running_text import segmenting
from magrounding.extensions.running_text.cli import segments
from magrounding.extensions.running_text.edges import Edges
from magrounding.extensions.running_text.edges_learning import learn_edges
from magrounding.extensions.running_text.segmenting import prepare_segmenters
from magrounding.extensions.running_text.segments import Delexicalised, Segmenter
from magrounding.extensions.running_text.segments_learning import learn_segments
from magrounding.teams.evaluate import evaluate
from magrounding.teams.loading import load_team
from tests.experiment.tiny_runs import LEARNER, NETWORK, phases_of, tiny_settings


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(segmenting, "GAMES", 64)
    monkeypatch.setattr(segmenting, "ROUNDS", 2)
    monkeypatch.setattr(segmenting, "learn_segments", partial(learn_segments, steps=10))
    monkeypatch.setattr(segmenting, "learn_edges", partial(learn_edges, steps=5))


def session(agent, stage="s1", segments="learnt", **changes):
    settings = tiny_settings(
        agent=agent,
        stages=("s1", "s5"),
        phases=phases_of(60, LEARNER),
        network={**NETWORK, "segments": segments},
        env_options={"max_cycles": 8, "layout": "stream"},
        **changes,
    )
    (segment,) = settings.resolve().of_stage(stage)
    return StageSession(segment, 0, torch.device("cpu"))


def cut(session):
    """What each agent's network makes of a manual."""
    observation, _ = session.vec.reset(seed=5)
    manual = torch.from_numpy(observation["manual"].copy())
    found = [
        each(manual).ids
        for player in session.players
        for each in player.policy.modules()
        if isinstance(each, Delexicalised)
    ]
    assert len(found) == session.settings.agents
    return found


@pytest.mark.parametrize(
    ("agent", "segments"), [("relread", "learnt"), ("endi_dis_relread", "learnt"), ("relread", "edges")]
)
def test_a_stage_begins_with_cuts_that_learning_leaves_alone_and_checkpoints_keep(agent, segments):
    begun = session(agent, segments=segments)
    prepare_segmenters(begun)
    first = cut(begun)
    assert len(first[0]) > 1 < first[0].shape[1]
    begun.source.start(3)
    for steps in (0, 30):
        begun.iterate(steps)
    for now, before in zip(cut(begun), first, strict=True):
        torch.testing.assert_close(now, before)
    resumed = session(agent, segments=segments)
    begun.source.start(3)
    resumed.resume(unpack_session(pack_session(begun), resumed, None), 60)
    for now, before in zip(cut(resumed), first, strict=True):
        torch.testing.assert_close(now, before)
    for own, kept in zip(resumed.weights(), begun.weights(), strict=True):
        assert own.keys() == kept.keys()
        assert any("segments." in name for name in own)
        for name, tensor in own.items():
            torch.testing.assert_close(tensor, kept[name], rtol=0, atol=0)


def test_each_stage_learns_its_own_sentences():
    first, second = session("relread"), session("relread", "s5")
    prepare_segmenters(first)
    unpack_learners(pack_learners(first.learners), second.learners, None)
    inherited = second.weights()[0]["segments.known"].clone()
    torch.testing.assert_close(inherited, first.weights()[0]["segments.known"], rtol=0, atol=0)
    prepare_segmenters(second)
    assert (second.weights()[0]["segments.known"] != inherited).any()


def test_a_trained_team_wins_behind_a_segmenter_what_it_wins_of_rows(tmp_path, capsys):
    line = ("--run", "pretrained:ma_rtfm-s5-2agents", "--out", str(tmp_path / "team"))
    assert CommandLine("magrounding segments", line).run(segments) == 0
    assert "| eval | 100.0 % | 100.0 % | 100.0 % | 100.0 % |" in capsys.readouterr().out
    options = {"stage": "s5", "agents": 2, "split": "eval", "max_cycles": 80}
    before, behind = load_team("pretrained:ma_rtfm-s5-2agents"), load_team(tmp_path / "team")
    won = [
        evaluate(team, "ma_rtfm", {**options, "layout": layout}, 64, seed=3 * 2**40).won.mean()
        for team, layout in ((before, "statements"), (behind, "stream"), (before, "stream"))
    ]
    assert won[0] > 0.7
    assert abs(won[0] - won[1]) <= 0.05
    assert won[2] < 0.2
    for own, shipped in zip(behind.policies, before.policies, strict=True):
        for name, tensor in shipped.state_dict().items():
            torch.testing.assert_close(own.state_dict()[name], tensor, rtol=0, atol=0)


def test_a_trained_team_is_made_to_read_another_stage(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(segmenting, "learn_edges", partial(learn_edges, steps=20))
    line = ("--run", "pretrained:ma_rtfm-s5-2agents", "--by", "edges", "--reads", "s6")
    line = (*line, "--assume", "parallel+override", "--out", str(tmp_path / "team"))
    assert CommandLine("magrounding segments", line).run(segments) == 0
    told = capsys.readouterr().out
    assert "| facts put together rightly | as written |" in told
    assert "| eval_construction |" in told
    before, behind = load_team("pretrained:ma_rtfm-s5-2agents"), load_team(tmp_path / "team")
    options = {"stage": "s6", "agents": 2, "split": "eval", "max_cycles": 2}
    assert 0 < evaluate(behind, "ma_rtfm", options, 8).fact_accuracy < 1
    for own, shipped in zip(behind.policies, before.policies, strict=True):
        assert own.config.segments == "edges"
        for name, tensor in shipped.state_dict().items():
            torch.testing.assert_close(own.state_dict()[name], tensor, rtol=0, atol=0)


def test_a_team_of_messenger_reads_running_text_behind_what_divides_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(segmenting, "learn_segments", partial(learn_segments, steps=60))
    run, won, sentences = "pretrained:messenger-s2", {}, {}
    for by in ("learnt", "stops"):
        line = ("--run", run, "--by", by, "--out", str(tmp_path / by))
        assert CommandLine("magrounding segments", line).run(segments) == 0
        team = load_team(tmp_path / by)
        for layout in ("statements", "paragraph", "stream")[2 * (by == "learnt") :]:
            options = {"stage": "s2", "split": "test", "layout": layout}
            won[by, layout] = evaluate(team, "messenger", options, 50).won.mean()
            vec = make_vec("messenger", 40, **options)
            manual = vec.reset(seed=1)[0]["manual"].reshape(40, *vec.spec["manual"].shape)
            sentences[by, layout] = team.policies[0].segments(torch.from_numpy(manual)).ids.shape[1]
    assert "| manuals divided as their statements are | statements |" in capsys.readouterr().out
    rows = evaluate(load_team(run), "messenger", {"stage": "s2", "split": "test"}, 50).won.mean()
    as_it_is = evaluate(load_team(run), "messenger", {"stage": "s2", "split": "test", "layout": "paragraph"}, 50)
    assert won["stops", "statements"] == rows > 0.8
    assert won["stops", "paragraph"] > as_it_is.won.mean() + 0.3
    assert won["stops", "stream"] < rows - 0.3, "a stream has no stops"
    assert sentences["stops", "stream"] == 1 < sentences["learnt", "stream"]


def test_sentences_of_paragraphs_teach_what_rows_do():
    rows, stops = (
        segmenting.learn_segments_of(Segmenter, tiny_settings(stages=("s5",)).resolve().stages["s5"], statements=known)
        for known in ("rows", "stops")
    )
    assert torch.equal(rows.letters, stops.letters)
    assert torch.equal(rows.known, stops.known)
    assert torch.equal(rows.shapes, stops.shapes)
    torch.testing.assert_close(rows.scores, stops.scores)
    found = segmenting.learn_segments_of(
        Edges, tiny_settings(stages=("s6",)).resolve().stages["s6"], statements="stops"
    )
    assert found.usual.any(1).sum() == 7


def test_other_seeds_draw_other_games_and_what_was_stopped_can_be_done_again(tmp_path, capsys, monkeypatch):
    line = ("--run", "pretrained:ma_rtfm-s5-2agents", "--out", str(tmp_path / "team"))
    real, drawn = segmenting._drawn, []

    def stopped(vec, seed):
        reset = vec.reset
        vec.reset = lambda seed: drawn.append(range(seed, seed + vec.num_envs)) or reset(seed=seed)
        real(vec, seed)
        raise ConfigurationError("stopped")

    monkeypatch.setattr(segmenting, "_drawn", stopped)
    for seed in (0, 1, 2**31 - 1):
        assert CommandLine("magrounding segments", (*line, "--seed", str(seed))).run(segments) == 2
        assert "stopped" in capsys.readouterr().err
    assert [games.start for games in drawn[:2]] == [0, segmenting.GAMES], "what the shipped teams learnt from"
    assert all(one.stop <= other.start for one, other in pairwise(drawn)), "no game is drawn twice"
    assert drawn[-1].stop <= segmenting.HELD_OUT
    assert CommandLine("magrounding segments", (*line, "--by", "stops")).run(segments) == 0
    assert CommandLine("magrounding segments", (*line, "--by", "stops")).run(segments) == 2
