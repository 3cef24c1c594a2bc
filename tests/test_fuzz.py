"""Wrong arguments for everything that is public: one sentence comes of them, or a result; never anything else.

`make fuzz` draws ten thousand calls.
"""

import collections
import copy
import inspect
import json
import os
import resource
import signal
from importlib.util import find_spec
from pathlib import Path

import gymnasium
import pettingzoo
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import magrounding as mg
from tests.fuzzing import FUNCTIONS, GOOD, NEEDED, SUBJECTS, arguments, methods

DRAWS = int(os.environ.get("MAGROUNDING_FUZZ_DRAWS", "300"))
SECONDS = 120
"""Of one call, on a busy machine that compiles it for the first time."""
MEMORY = 2 * 2**30


def calls():
    """(subject or "", name) of everything that is called."""
    pairs = [("", name) for name in FUNCTIONS] * 4  # they take more kinds of arguments than methods do
    for name, subject in SUBJECTS.items():
        if not is_there(name):
            continue
        thing, _ = subject.get()
        pairs += [(name, method) for method in methods(thing) if not (subject.shared and method == "close")]
    return pairs


def is_there(name):
    """Whether a subject's simulator is installed."""
    return name not in NEEDED or find_spec(NEEDED[name]) is not None


@pytest.fixture
def registries():
    """What is registered while it is in use is forgotten afterwards."""
    kept = [each._entries for each in (mg.ENVS, mg.AGENTS, mg.ALGORITHMS, mg.PRESETS, mg.TRACKERS)]
    kept += [gymnasium.registry, getattr(pettingzoo, "parallel_registry", {})]  # PettingZoo 1.26 has none
    before = [dict(each) for each in kept]

    def restore():
        for each, entries in zip(kept, before, strict=True):
            each.clear()
            each.update(entries)

    yield restore
    restore()


class Late(Exception):
    pass


def ring(*_):
    raise Late(f"the call took more than {SECONDS} s")


@pytest.mark.timeout(300 + DRAWS)
def test_wrong_arguments_end_in_one_sentence(registries):
    everything = calls()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = collections.Counter()

    @settings(
        max_examples=DRAWS, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def draw(data):
        subject, name = data.draw(st.sampled_from(everything), "what")
        thing, good = SUBJECTS[subject].get() if subject else (None, GOOD.get(name, {}))
        function = getattr(thing, name) if subject else FUNCTIONS[name]
        positional, keyword = data.draw(arguments(function, good), "with")
        inspect.signature(function).bind(*positional, **keyword)
        handler = signal.signal(signal.SIGALRM, ring)
        signal.alarm(SECONDS)
        try:
            function(*positional, **keyword)
            came, sentence = "a result", "-"
        except mg.MagroundingError as error:
            came, sentence = type(error).__name__, str(error)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, handler)
            registries()
        assert len(sentence.splitlines()) == 1
        said[came] += 1

    draw()
    print(f"{said.total():,} calls:", dict(said))
    assert said.total() >= DRAWS
    assert said["a result"] < said.total() / 2  # most arguments are wrong
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MEMORY


JUNK = st.one_of(
    st.sampled_from(
        [None, True, -1, 0.5, 10**30, "", "{", "}", "{a}", "{A2}", "{ab}", "{{a}}", "fire", "\ud800", "\0"]
    ),
    st.text(max_size=8),
    st.lists(st.sampled_from(["{a} {A}", "{b} {B}", "{team}", "x", 3]), max_size=3),
    st.dictionaries(st.sampled_from(["text", "said", "denied", "plain", "team", "x"]), st.text(max_size=8), max_size=2),
)


def places(content):
    """(container, key) of every part of a JSON."""
    for key, part in list(content.items() if isinstance(content, dict) else enumerate(content)):
        yield content, key
        if isinstance(part, dict | list):
            yield from places(part)


@pytest.mark.timeout(300 + DRAWS)
def test_junk_in_a_file_of_sentences_is_refused_in_one_sentence_or_plays(tmp_path):
    whole = json.loads((Path(mg.__file__).parent / "examples/sentences.json").read_text(encoding="utf-8"))
    file, came = tmp_path / "sentences.json", collections.Counter()

    @settings(
        max_examples=DRAWS, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def draw(data):
        content = copy.deepcopy(whole)
        for _ in range(data.draw(st.integers(1, 3), "changes")):
            of, key = data.draw(st.sampled_from(list(places(content))), "place")
            change = data.draw(st.sampled_from(["replace", "remove", "add"]), "change")
            if change == "remove":
                del of[key]
            elif change == "replace":
                of[key] = data.draw(JUNK, "junk")
            elif isinstance(of, dict):
                of[data.draw(st.sampled_from(["gapping", "goal", "eval", "ab", "zz", ""]), "name")] = data.draw(JUNK)
            else:
                of.insert(0, data.draw(JUNK, "junk"))
        file.write_text(json.dumps(content), encoding="utf-8")
        try:
            vec = mg.make_vec("ma_rtfm", 2, stage="s6", templates=str(file))
            vec.reset(seed=1)
            assert all(vec.facts(row) for row in range(2))
            end, sentence = "plays", "-"
        except mg.MagroundingError as error:
            end, sentence = "refused", str(error)
        assert len(sentence.splitlines()) == 1
        came[end] += 1

    draw()
    assert came["plays"] > DRAWS / 20
    assert came["refused"] > DRAWS / 4
