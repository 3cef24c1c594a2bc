"""Sentences of a file: forty from outside play as ours do, their claims are the game's, broken files are refused."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.constructions import CONSTRUCTIONS
from magrounding.envs.rtfm.games import prose_vocabulary, rtfm_vocabulary
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.envs.rtfm.sentences import find_sentences, our_sentences
from magrounding.errors import CheckpointError, ConfigurationError, DataNotFound, MagroundingError
from magrounding.extensions.running_text.cli.templates import MANUALS
from magrounding.teams.evaluate import evaluate
from magrounding.teams.loading import load_team
from magrounding.teams.saved_games import Header, Recorder, read_episodes, replayed, to_text
from tests.envs.test_equality import record
from tests.envs.test_rtfm_facts import check

FILE = "example:sentences.json"
CONTENT = json.loads((Path(mg.__file__).parent / "examples/sentences.json").read_text(encoding="utf-8"))
DATA = Path(mg.__file__).parent / "envs/rtfm/data"


def write(folder, content):
    path = folder / "sentences.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("split", ["train", "eval_new", "eval_paraphrase", "eval_construction", "eval_minimal"])
def test_spans_are_of_the_facts_of_the_game(split):
    wanted = {"said"} if split == "eval_paraphrase" else {"said", "denied", "retracted"}
    options = {"stage": "s6", "agents": 2, "layout": "merged", "split": split, "templates": FILE}
    assert check(options, games=60) == wanted


@pytest.mark.parametrize("split", ["train", "eval_paraphrase", "eval_construction"])
@pytest.mark.parametrize("author", ["wiki", "storyteller"])
def test_spans_are_of_the_facts_in_the_sentences_of_other_authors(author, split):
    options = {"stage": "s6", "agents": 2, "split": split, "templates": f"example:{author}.json"}
    assert "said" in check(options, games=40)
    assert len(find_sentences(f"example:{author}.json", language=True).templates) == 44


@pytest.mark.parametrize("task", ["simple_stationary", "nl"])
@pytest.mark.parametrize(
    "options", [{}, {"layout": "stream", "constructions": "all"}, {"resample_text": True}], ids=str
)
def test_spans_are_of_the_facts_of_every_task_of_one_agent(task, options):
    check({"task": task, "templates": FILE, **options}, "rtfm", 40)


@pytest.mark.parametrize("stage", ["s5", "s6"])
def test_nothing_but_text_differs(stage):
    ours, theirs = (mg.make_vec("ma_rtfm", 24, stage=stage, agents=2, templates=name) for name in (None, FILE))
    for before, after in zip(record(ours, 7, 30), record(theirs, 7, 30), strict=True):
        for key in before.keys() - {"manual", "goal", "final manual", "final goal", "document"}:
            np.testing.assert_array_equal(before[key], after[key], err_msg=key)


def test_every_sentence_of_its_split_is_drawn():
    sentences = find_sentences(FILE, language=True)
    for split, fewest in (("train", 29), ("eval_paraphrase", 7)):
        vec = mg.make_vec("ma_rtfm", 400, stage="s6", split=split, templates=FILE)
        vec.reset(seed=0)
        text = " | ".join(" ".join([*vec.world.text(b)["manual"], vec.world.text(b)["goal"]]) for b in range(400))
        longest = [
            max(t.text.replace("}", "{").split("{")[::2], key=len) for t in sentences.templates if t.split == split
        ]
        assert len(longest) == fewest
        assert all(part.strip() in text for part in longest)


@pytest.mark.parametrize("language", [False, True])
def test_ours_in_a_file_make_the_same_games(tmp_path, language):
    content = json.loads((DATA / "constructions.json").read_text(encoding="utf-8"))
    plain = json.loads((DATA / "templates.json").read_text(encoding="utf-8"))
    for split, held_out in (("train", ""), ("eval_paraphrase", "_held_out")):
        content[split]["plain"] = plain[("language" if language else "plain") + held_out]
    path = write(tmp_path, content)
    assert find_sentences(path, language).templates == our_sentences(language).templates
    for split in ("train", "eval_paraphrase", "eval_construction", "eval_minimal"):
        options = {"stage": "s6" if language else "s4", "constructions": "all", "split": split}
        ours, theirs = (mg.make_vec("ma_rtfm", 40, templates=name, **options) for name in (None, path))
        seen, other = ours.reset(seed=1)[0], theirs.reset(seed=1)[0]
        assert ours.spec.words == theirs.spec.words
        assert all(np.array_equal(seen[name], other[name]) for name in seen)


def test_new_words_have_ids_behind_the_others_and_the_file_is_known_by_its_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, CONTENT)
    spec = mg.ENVS["ma_rtfm"].describe(stage="s6", templates="sentences.json")
    assert spec.words[: len(prose_vocabulary())] == prose_vocabulary().words
    assert spec.source == f"templates sentences.json, sha256 {find_sentences('sentences.json', True).digest}"
    assert mg.ENVS["ma_rtfm"].describe(stage="s6").source == ""
    assert (
        mg.ENVS["rtfm"].describe(task="nl", templates=FILE).words[: len(rtfm_vocabulary())] == rtfm_vocabulary().words
    )
    documents = [record(mg.make_vec("ma_rtfm", 4, stage="s6", templates=t), 0, 1)[1]["document"] for t in (None, FILE)]
    assert not np.array_equal(*documents)
    changed = json.loads(json.dumps(CONTENT))
    changed["train"]["plain"]["goal"] = ["Zounds, the {team}!"]
    write(tmp_path, changed)
    other = mg.ENVS["ma_rtfm"].describe(stage="s6", templates="sentences.json")
    assert other.source != spec.source
    assert "zounds" in other.words


def test_a_pretrained_team_plays_in_words_that_it_does_not_know():
    team = load_team("pretrained:ma_rtfm-s5-2agents")
    vec = mg.make_vec("ma_rtfm", 2, stage="s5", agents=2, templates=FILE)
    assert team.for_games(vec) is not team
    options = {"stage": "s5", "templates": FILE}
    assert len(evaluate(team, "ma_rtfm", options, 4, num_envs=2).won) == 4


@pytest.mark.parametrize(("env", "options"), [("rtfm", {"task": "nl"}), ("ma_rtfm", {"stage": "s6", "agents": 2})])
def test_games_are_saved_with_the_files_hash_and_played_again_with_it_alone(tmp_path, env, options):
    path = write(tmp_path, CONTENT)
    vec = mg.make_vec(env, 1, templates=path, max_cycles=12, **options)
    recorder, actor = Recorder(1, vec.spec), Oracle(vec)
    obs, info = vec.reset(seed=4)
    memory, done = actor.initial_memory(1), False
    while not done:
        recorder.observe(obs, info)
        actions, memory = actor.act(obs, memory, info)
        obs, _, _, truncated, info = vec.step(actions)
        recorder.record(actions, truncated, info)
        done = info.done[0]
    games = tmp_path / "games.jsonl"
    header = Header.of(vec, ("oracle",) * vec.num_agents, "greedy")
    games.write_text(to_text(header, [recorder.episode(0, 4)]), encoding="utf-8")
    header, episodes = read_episodes(games)
    assert header.source == f"templates {path}, sha256 {find_sentences(path, True).digest}"
    assert list(replayed(games, header, episodes)) == [0]
    (tmp_path / "sentences.json").write_text(json.dumps(CONTENT, indent=1), encoding="utf-8")
    with pytest.raises(CheckpointError):
        list(replayed(games, header, episodes))
    plain = Header.of(mg.make_vec(env, 1, **options), ("oracle",) * vec.num_agents, "greedy")
    assert "source" not in to_text(plain, [])


def plain(content, kind):
    return content["train"]["plain"][kind]


def add(content, construction, kind, entry, split="train"):
    content[split].setdefault(construction, {}).setdefault(kind, []).append(entry)


BROKEN = {
    "an unknown part": lambda c: c.update(tain={}),
    "an unknown kind": lambda c: c["train"]["plain"].update(teams=[]),
    "no list": lambda c: c["train"]["plain"].update(team="x"),
    "an empty text": lambda c: plain(c, "goal").append(" "),
    "a long text": lambda c: plain(c, "team").append("{a} {A}" + " x" * 59),
    "an unknown slot": lambda c: plain(c, "team").append("{a} {C}."),
    "a class of another split": lambda c: add(c, "passive", "modifier", "{A} {pack} hate {a}", "eval_paraphrase"),
    "a slot twice": lambda c: plain(c, "team").append("{a} , {a} {A}"),
    "no name": lambda c: plain(c, "modifier").append("{modifiers} do."),
    "one list for two": lambda c: add(c, "gapping", "team", "{a} {A}"),
    "a false claim that is said": lambda c: add(
        c, "gapping", "team", {"text": "{a} {A} {b} {B}", "said": ["a B", "b A"]}
    ),
    "a true claim that is denied": lambda c: add(c, "not_but", "team", {"text": "{a} {A} {B}", "denied": ["a A"]}),
    "nothing denied": lambda c: add(c, "not_but", "team", "{a} {A}"),
    "a goal with a list": lambda c: plain(c, "goal").append("{team} {a}"),
    "one filler": lambda c: c["train"].update(filler={"filler": ["x"]}),
    "a name of the game": lambda c: plain(c, "team").append("{a} fire {A}"),
    "a sentence in two splits": lambda c: add(c, "plain", "goal", plain(c, "goal")[0], "eval_paraphrase"),
    "no plain sentence": lambda c: c["train"]["plain"].pop("team"),
    "twins of other words": lambda c: add(c, "gapping", "team", "{a} {A} . {b} {B}", "eval_minimal"),
    "a class without words": lambda c: c["classes"]["train"].update(kit=[]),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_file_is_refused_in_a_sentence_that_names_it(tmp_path, fault):
    content = json.loads(json.dumps(CONTENT))
    BROKEN[fault](content)
    path = write(tmp_path, content)
    with pytest.raises(DataNotFound) as refused:
        mg.make("ma_rtfm", stage="s6", templates=path)
    assert str(refused.value).startswith(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", ["{", "[]"])
def test_what_is_no_dictionary_is_refused(tmp_path, content):
    for path in (write(tmp_path, content), "nowhere"):
        with pytest.raises(DataNotFound):
            mg.make_vec("rtfm", 2, templates=path)


def test_a_split_of_which_a_file_says_nothing_is_refused_and_the_others_play(tmp_path):
    content = {"train": {"plain": {kind: ["{modifiers} {element}"] for kind in ("modifier", "team")}}}
    content["train"]["plain"]["goal"] = ["{team}"]
    content["train"]["plain"]["team"] = ["{monsters} , {team}"]
    path = write(tmp_path, content)
    check({"stage": "s6", "templates": path, "split": "eval_new"}, games=20)
    with pytest.raises(DataNotFound):
        mg.make_vec("ma_rtfm", 2, stage="s6", templates=path, split="eval_paraphrase")
    with pytest.raises(ConfigurationError):
        mg.make_vec("ma_rtfm", 2, stage="s6", templates=path, split="eval_construction")
    with pytest.raises(MagroundingError):
        mg.make_vec("rock_paper_scissors", 2, templates=path)


def test_the_command_renders_twenty_manuals_and_their_claims(monkeypatch, capsys):
    from magrounding.cli.main import main

    monkeypatch.setattr("sys.argv", ["magrounding", "templates", "check", FILE])
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"templates {FILE}, sha256 ")
    assert lines[0].endswith(
        ": 29 of train, 7 of eval_paraphrase, 2 of eval_construction, 2 of eval_minimal; 70 new words"
    )
    count = Counter(line.split(":")[0].split()[0] for line in lines if line.strip())
    assert count["seed"] == MANUALS
    assert count["said"] == 7 * MANUALS
    assert count["denied"] > 0
    assert count["retracted"] > 0
    monkeypatch.setattr("sys.argv", ["magrounding", "templates", "check", "nowhere"])
    assert main() == 2
    assert capsys.readouterr().err == "error: there are no templates at nowhere\n"


def test_a_file_of_many_sentences_is_bounded(tmp_path):
    content = json.loads(json.dumps(CONTENT))
    content["train"]["filler"]["filler"] += [f"filler x{k}." for k in range(1000)]
    with pytest.raises(DataNotFound):
        mg.make("rtfm", templates=write(tmp_path, content))
    assert set(CONSTRUCTIONS) >= {*content["train"]} - {"plain"}
