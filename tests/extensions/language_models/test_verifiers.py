"""verifiers itself evaluates our games, by its command and by its classes, against a server on loopback."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.extensions.language_models.chats import chats_of
from magrounding.extensions.language_models.open_game import OPEN_SEED, OpenGames
from magrounding.teams.actor import make_expert
from tests.extensions.language_models.served import Served, last_legal, serving
from tests.extensions.language_models.test_open_game import DEADLY, played, reply, sorted_texts

pytest.importorskip("verifiers", reason="verifiers is not installed: make test-clients")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # its own parts, as they are imported

import verifiers.v1 as vf  # noqa: E402

NAME = "magrounding-verifiers"
COMMAND = Path(sys.executable).with_name("vf-eval")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """The folder in which verifiers keeps what its agents write."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("verifiers.v1.runtimes.subprocess.CACHE_DIR", tmp_path / "cache")


def evaluate(served, taskset, games=1, **roles):
    """Play the first games of a taskset; return their episodes."""
    config = vf.resolve_env_config({"taskset": {"id": NAME, **taskset}, **roles})
    endpoint = vf.ModelContext(
        model="tiny", client=vf.EvalClientConfig(base_url=served.url), sampling=vf.SamplingConfig()
    )

    async def run():
        env = vf.load_environment(config)
        async with env.serving():
            return [await env.run_episode(task, endpoint) for task in env.taskset.take(games)]

    return asyncio.run(run())


def of_messages(served):
    return [body["messages"] for body in served.asked]


def test_its_command_evaluates_our_games(tmp_path):
    """The oracle's moves, as replies, win every game."""
    options, moves = {"task": "simple_stationary"}, {}
    with closing(mg.make_vec("rtfm", 1, split="train", **options)) as vec:
        for seed in range(OPEN_SEED + 5, OPEN_SEED + 8):
            chat = chats_of(vec, seed, make_expert(vec))[0]
            moves |= {(chat.rules, turn.seen.removeprefix("MAP\n")): turn.move for turn in chat.turns}

    def expert(body):
        rules = body["messages"][1]["content"].partition("\n\nMAP\n")[0]
        seen = body["messages"][-1]["content"].partition("MAP\n")[2]
        return f"<move>{moves[rules, seen]}</move>"

    chosen = {"env": "rtfm", "options.task": "simple_stationary", "first": "5", "history": "80"}
    taskset = [word for name, value in chosen.items() for word in (f"--env.taskset.{name}", value)]
    with serving(Served(expert)) as served:
        rewards = ["--env.taskset.task.rewards.world_reward.weight", "0.5"]
        model = ["--model", "tiny", "--client.base-url", served.url]
        run = ["-n", "3", "--no-push", "--no-rich", "--output-dir", str(tmp_path), "--run.name", "run"]
        done = subprocess.run(
            [COMMAND, NAME, *taskset, *rewards, *model, *run],
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(tmp_path)},
        )
    assert done.returncode == 0, done.stderr
    episodes = [json.loads(line) for line in (tmp_path / "run" / "traces.jsonl").read_text().splitlines()]
    assert sorted(episode["task"]["data"]["number"] for episode in episodes) == [5, 6, 7]
    for episode in episodes:
        assert episode["ok"]
        assert episode["task"]["data"]["options"] == {**options, "max_cycles": 80, "split": "train"}
        (trace,) = episode["traces"]
        assert trace["agent"]["name"] == "agent_0"
        assert trace["rewards"]["won"] == {"score": 1.0, "weight": 1.0}
        assert trace["rewards"]["world_reward"]["weight"] == 0.5
        assert trace["metrics"]["refused"] == 0.0
        assert trace["metrics"]["steps"] == sum(node["message"]["role"] == "assistant" for node in trace["nodes"])
    assert len(served.asked) == sum(episode["traces"][0]["metrics"]["steps"] for episode in episodes)


def test_open_agents_are_asked_what_language_models_are():
    taskset = {"env": "ma_rtfm", "options": DEADLY, "players": "model,oracle,model", "history": 2}
    with serving(Served(reply)) as served:
        episodes = evaluate(served, taskset, games=3)
    requests, refused = [], 0
    for number, episode in enumerate(episodes):
        game, asked, _ = played(OpenGames(**taskset), number)
        requests += asked
        assert episode.ok
        assert sorted(trace.agent.name for trace in episode.traces) == ["agent_0", "agent_2"]
        for trace in episode.traces:
            agent = int(trace.agent.name[-1])
            assert trace.rewards["won"].score == float(game.won)
            assert trace.rewards["world_reward"].score == pytest.approx(game.returns[agent])
            assert trace.metrics["steps"] == game.steps
            refused += trace.metrics["refused"]
    assert sorted_texts(of_messages(served)) == sorted_texts(requests)
    assert refused > 0


def test_a_game_is_one_conversation_where_all_of_it_is_read_again():
    """Tokens are trained in branches: the fewer the better."""
    options, branches = {"stage": "s1", "agents": 2, "max_cycles": 8}, {}
    taskset = {"env": "ma_rtfm", "options": options, "players": "model,oracle"}
    for history in (1, 8):
        with serving(Served(last_legal)) as served:
            (episode,) = evaluate(served, {**taskset, "history": history})
        branches[history] = len(episode.traces[0].branches)
    assert branches[8] == 1 < branches[1]


def test_a_limit_of_a_role_ends_the_game():
    with serving(Served(last_legal)) as served:
        taskset = {"env": "ma_rtfm", "options": {"stage": "s1", "agents": 2}}
        (episode,) = evaluate(served, taskset, agent_1={"max_turns": 2})
    traces = {trace.agent.name: trace for trace in episode.traces}
    assert {name: trace.metrics["steps"] for name, trace in traces.items()} == {"agent_0": 2.0, "agent_1": 2.0}
    assert traces["agent_1"].stop_condition == "max_turns"
    assert [trace.reward for trace in traces.values()] == [0.0, 0.0]


def test_a_model_that_fails_is_a_fault_and_no_lost_game():
    with serving(Served(lambda body: "fault:odd")) as served:
        (episode,) = evaluate(served, {"env": "rtfm"})
    assert not episode.ok
    assert not episode.traces[0].rewards


def test_a_team_that_does_not_exist_is_refused_before_any_game():
    with serving(Served()) as served, pytest.raises(ConfigurationError):
        evaluate(served, {"env": "ma_rtfm", "options": {"stage": "s1"}, "players": "model,pretrained:none"})
    assert not served.asked


@pytest.mark.parametrize(
    ("taskset", "said"),
    [
        ({"split": "tests"}, "unknown split of rtfm 'tests'"),
        ({"options": {"split": "eval"}}, "the split chooses it"),
        ({"players": "oracle"}, "no agent is open"),
        ({"games": 0}, "games must be an integer from 1"),
        ({"env": "ma_rtfm", "options": {"agents": 11, "size": 12}}, "there are roles for 10 agents"),
    ],
)
def test_games_that_cannot_be(taskset, said):
    with pytest.raises(ValueError, match=said):
        vf.resolve_env_config({"taskset": {"id": NAME, "env": "rtfm", **taskset}})
