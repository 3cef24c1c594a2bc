"""Wrong arguments for everything that is public: one sentence comes of them, or a result; never anything else.

`make fuzz` draws ten thousand calls.
"""

import collections
import inspect
import os
import resource
import signal
from importlib.util import find_spec

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
