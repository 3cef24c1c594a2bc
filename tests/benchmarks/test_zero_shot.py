"""The zero-shot command plays the runs' teams on the sets asked for, and refuses nonsense in one sentence."""

import io
import shutil
import sys

import pytest
from matplotlib.image import imread

from benchmarks import zero_shot
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.metrics import read_metrics
from magrounding.run_folder import METRICS_FILE
from magrounding.storage import read_json, write_json
from magrounding.teams.scripted import RandomTeam
from magrounding.training.qmix import QmixConfig
from tests.experiment.tiny_runs import phases_of, tiny_run
from tests.full import in_full

FEW = ("--episodes", 8, "--splits", "eval,eval_10x10")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return tiny_run(tmp_path_factory.mktemp("runs") / "run", "s1", "s2")


@pytest.fixture(scope="module")
def dividing(tmp_path_factory):
    """A run of EnDi, on fewer stages and with games of another length."""
    folder = tmp_path_factory.mktemp("runs") / "endi"
    return tiny_run(folder, "s1", agent="endi_dis_relread", env_options={"max_cycles": 5})


def run(monkeypatch, *arguments):
    monkeypatch.setattr(evaluation, "make_expert", lambda vec: RandomTeam(vec.num_agents, 5))
    monkeypatch.setattr(sys, "argv", ["zero_shot", *map(str, arguments)])
    return zero_shot.main()


def cells(text, head):
    """The first table below a heading, as rows of cells."""
    lines = text.split(f"## {head}\n\n", 1)[1].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


def test_it_repeats_the_runs_own_report(finished, monkeypatch, capsys, tmp_path):
    assert run(monkeypatch, "--run", finished, *FEW, "--out", tmp_path / "out") == 0
    found = read_json(tmp_path / "out" / "zero_shot.json")
    assert (found["stage"], found["episodes"], list(found["sets"])) == ("s2", 8, ["eval", "eval_10x10"])
    assert found["sets"]["eval"]["baselines"]["random"]["games"] == 8
    for play in ("greedy", "sampled"):
        scores = found["sets"]["eval"]["runs"]["run"][play]
        rates = [scores["seeds"][k]["win_rate"] for k in ("0", "1")]
        assert scores["statistics"]["win_rate"]["mean"] == pytest.approx(sum(rates) / 2)
        for k, summary in scores["seeds"].items():
            lines = [line for line in read_metrics(finished / f"seed_{k}" / METRICS_FILE) if line["stage"] == "s2"]
            reported = next(line for line in lines if line.get("when") == "after" and line["play"] == play)
            assert (reported["set"], reported["manual"]) == ("eval", "true")
            shared = summary.keys() & reported.keys()
            assert {"win_rate", "length", "return"} < shared
            assert {name: reported[name] for name in shared} == pytest.approx({name: summary[name] for name in shared})
    assert str(tmp_path / "out" / "zero_shot.md") in capsys.readouterr().out


def test_runs_side_by_side(finished, dividing, monkeypatch, capsys, tmp_path):
    arguments = ("--run", finished, dividing, "--names", "reads", "divides", *FEW, "--play", "greedy")
    assert run(monkeypatch, *arguments, "--out", tmp_path) == 0
    text, found = (tmp_path / "zero_shot.md").read_text(), read_json(tmp_path / "zero_shot.json")
    assert found["stage"] == "s1"  # the last that both have
    assert found["sets"]["eval"]["options"]["max_cycles"] == 8  # the first run's, for everybody
    heads, _, reads, divides, random, *_ = cells(text, "eval")
    assert heads[2] == "win rate"
    assert [row[0] for row in (reads, divides, random)] == ["reads", "divides", "random"]
    statistics = {name: of["greedy"]["statistics"] for name, of in found["sets"]["eval"]["runs"].items()}
    for measure in ("mask coverage", "modelling accuracy"):
        assert reads[heads.index(measure)] == random[heads.index(measure)] == "–"
        known = statistics["divides"][measure.replace(" ", "_")]
        assert divides[heads.index(measure)] == f"{100 * known['mean']:.1f} % ± {100 * known['std']:.1f} %"
        assert measure.replace(" ", "_") not in statistics["reads"]
    picture = imread(io.BytesIO((tmp_path / "zero_shot.png").read_bytes()))
    assert picture[..., :3].min() < 0.5 < picture[..., :3].mean()
    assert cells(capsys.readouterr().out, "eval") == cells(text, "eval")


def test_a_packaged_team_by_its_name(monkeypatch, tmp_path):
    name = "ma_rtfm-s5-2agents"
    ways = ("--pretrained", name), ("--run", f"pretrained:{name}"), ("--pretrained", f"pretrained:{name}")
    for asked in in_full(ways, ways[:2]):
        assert run(monkeypatch, *asked, "--episodes", 4, "--splits", "eval", "--out", tmp_path) == 0
        found = read_json(tmp_path / "zero_shot.json")["sets"]["eval"]
        assert list(found["runs"]) == [name]
        assert [row["mean"] for row in found["published"]] == [0.61, 0.39, 0.38]


def test_papers_numbers_stand_beside_maps_of_their_size_alone(monkeypatch, tmp_path):
    asked = ("--pretrained", "ma_rtfm-s5-2agents", "--splits", "eval,eval_10x10")
    assert run(monkeypatch, *asked, "--episodes", 2, "--play", "greedy", "--out", tmp_path, "env.size=9") == 0
    found = read_json(tmp_path / "zero_shot.json")["sets"]
    assert found["eval"]["published"] == []
    assert [row["mean"] for row in found["eval_10x10"]["published"]] == [0.62, 0.44, 0.41]


@pytest.mark.parametrize("with_itself", in_full([False, True], [True]))
def test_cross_play_beside_self_play(finished, dividing, monkeypatch, capsys, tmp_path, with_itself):
    mate = finished if with_itself else dividing
    assert run(monkeypatch, "--run", finished, "--teammate", mate, *FEW, "--stage", "s1", "--out", tmp_path) == 0
    found = read_json(tmp_path / "zero_shot.json")["sets"]["eval"]
    assert list(found["runs"]) == (["run"] if with_itself else ["run", "endi"])
    who = "run with run" if with_itself else "run with endi"
    pairs = found["cross_play"][who]["greedy"]["seeds"]
    assert list(pairs) == (["0 with 1"] if with_itself else ["0 with 0", "1 with 1"])
    for summary in pairs.values():
        assert summary["win_rate"] == pytest.approx((summary["win_rate_agent_0"] + summary["win_rate_agent_1"]) / 2)
    text = capsys.readouterr().out
    assert [row[0] for row in cells(text, "Win rates")[2:]].count(who) == 2
    table = text.split("## Cross-play", 1)[1].split("\n\n")[1].splitlines()
    assert sum(line.startswith(f"| {who} | eval") for line in table) == 4


def altered(folder, target, **changes):
    """A copy of a run whose config says something else."""
    shutil.copytree(folder, target)
    write_json(target / "config.json", {**read_json(target / "config.json"), **changes})
    return target


@pytest.mark.parametrize(
    "arguments",
    [
        "--splits moon",
        "--stage s5",
        "--seeds 0,7",
        "--splits ,",
        "--play slowly",
        "--run nowhere",
        "--pretrained rtfm-nl",
        "--names a b",
        "--teammate pretrained:messenger-s2",
    ],
)
def test_bad_input_is_one_sentence(finished, monkeypatch, capsys, arguments):
    assert run(monkeypatch, "--run", finished, *arguments.split()) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("changes", [{"agents": 3}, {"stages": ["s3"]}])
def test_runs_that_cannot_play_the_same_games(finished, monkeypatch, tmp_path, changes):
    assert run(monkeypatch, "--run", finished, altered(finished, tmp_path / "other", **changes)) == 2


def test_a_seed_that_is_not_finished(finished, monkeypatch, tmp_path):
    unfinished = tmp_path / "unfinished"
    shutil.copytree(finished, unfinished)
    shutil.rmtree(unfinished / "seed_1" / "s2")
    assert run(monkeypatch, "--run", unfinished, "--episodes", 4, "--splits", "eval") == 2
    assert run(monkeypatch, "--run", unfinished, "--episodes", 4, "--splits", "eval", "--seeds", "0") == 0


def test_runs_that_see_other_things(finished, monkeypatch, capsys, tmp_path):
    options = {"max_cycles": 8, "occupants": 1}
    other = tiny_run(tmp_path / "other", "s1", env_options=options, final_sets=("eval",))
    assert run(monkeypatch, "--run", finished, other, *FEW) == 2
    assert "other was trained to read and see other things than the games of run show" in capsys.readouterr().err


def test_maps_that_a_network_is_not_made_for(finished, monkeypatch, capsys, tmp_path):
    """They cost a dash, beside a run that plays them too; only what nobody plays is refused."""
    learner = QmixConfig(replay_steps=300, unroll=5, batch=4, updates=0.25, state_maps=4)
    options = {"maps": 4, "hidden": 8, "embedding": 4}
    few = {"phases": phases_of(60, learner), "network": options}
    blind = tiny_run(tmp_path / "blind", "s1", agent="qmix", **few)
    assert run(monkeypatch, "--run", finished, blind, *FEW, "--stage", "s1", "--out", tmp_path) == 0
    sets = read_json(tmp_path / "zero_shot.json")["sets"]
    assert {name: [*each["runs"]] for name, each in sets.items()} == {"eval": ["run", "blind"], "eval_10x10": ["run"]}
    assert {name: [*each["unplayed"]] for name, each in sets.items()} == {"eval": [], "eval_10x10": ["blind"]}
    about = sets["eval_10x10"]["unplayed"]["blind"]
    assert about["reason"] in capsys.readouterr().out
    assert about["reason"] in (tmp_path / "zero_shot.md").read_text(encoding="utf-8")
    assert run(monkeypatch, "--run", blind, "--splits", "eval_10x10") == 2
    assert about["reason"] in capsys.readouterr().err
