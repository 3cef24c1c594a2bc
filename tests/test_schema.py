"""Options: what annotations check and convert, and what files, command lines and comparisons make of them."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

from magrounding.cli.command import BAD_INPUT, CommandLine
from magrounding.errors import ConfigurationError
from magrounding.extensions.cluster.cli import sweep
from magrounding.schema import (
    INFINITE,
    Count,
    Natural,
    NonNegative,
    OneOf,
    Options,
    Positive,
    Share,
    Sizes,
    assign,
    diff,
    dump,
    has,
    load,
    options_of,
)


@dataclass(frozen=True)
class Learner(Options):
    renamed: ClassVar[Mapping[str, str]] = {"speed": "rate"}
    tag: ClassVar[str] = "algorithm"
    algorithm: ClassVar[str]

    rate: Share = 0.5
    weights: Mapping[str, NonNegative] = field(default_factory=dict)

    @classmethod
    def owner(cls):
        return f"learner {cls.algorithm}"

    @classmethod
    def variant(cls, name):
        return {"plain": Plain, "deep": Deep}[name]


@dataclass(frozen=True)
class Plain(Learner):
    algorithm: ClassVar[str] = "plain"


@dataclass(frozen=True)
class Deep(Learner):
    algorithm: ClassVar[str] = "deep"

    depth: Count = 3


@dataclass(frozen=True)
class Stop(Options):
    after: Natural | None = None


@dataclass(frozen=True)
class Run(Options):
    title: str
    learners: Mapping[str, tuple[Learner, ...]] = field(default_factory=dict)
    stop: Stop = field(default_factory=Stop)
    sizes: Sizes = (8,)
    scale: Positive = 1.0
    sight: Annotated[NonNegative, INFINITE] | None = None
    patch: Literal[1, 2, 4] = 2
    level: Annotated[str, OneOf(("easy", "hard"), "level of play")] = "easy"
    layout: Annotated[str, OneOf(("rows", "stream"))] | None = None
    sets: tuple[Annotated[str, OneOf(("train", "eval"), "set")], ...] = ()
    quick: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


RUN = Run("one", {"a": (Plain(),), "b": (Plain(rate=0.1), Deep(weights={"x": 1.0}))})


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("title", [3]),
        ("patch", ["\ud800", 3, 4.0]),
        ("sizes", [8, [], [8, 0], [8.0], [2**31]]),
        ("scale", [0, True, math.inf, 10**400, None]),
        ("sight", [-1, -math.inf, "far"]),
        ("quick", [1, "yes"]),
        ("level", ["haard", None]),
        ("layout", ["column"]),
        ("sets", [["train", "evil"], "train"]),
        ("extra", [[1], {"a": [1, math.nan]}]),
        ("stop", [3, {"after": -1}, {"before": 1}]),
        ("learners", [3, {"a": 3}, {"a": [3]}]),
    ],
)
def test_a_value_that_cannot_be_is_refused(option, values):
    for value in values:
        with pytest.raises(ConfigurationError):
            Run(**{"title": "one", option: value})


def test_values_are_python_s_own():
    run = Run(Path("a/b"), sizes=[np.int64(8)], scale=np.float32(0.5), quick=np.True_, extra={"a": [np.int8(1)]})
    assert (run.title, run.sizes, run.scale, run.quick, run.extra) == ("a/b", (8,), 0.5, True, {"a": (1,)})
    assert [type(each) for each in (run.title, run.sizes[0], run.scale, run.quick)] == [str, int, float, bool]
    assert type(Run("one", scale=2).scale) is int, "keys of documents are made of options"
    assert json.loads(json.dumps(run.as_dict())) == run.as_dict()


def test_infinity_is_a_value_only_where_the_annotation_has_it():
    assert Run("one", sight=math.inf).sight == math.inf
    assert load(Run, json.loads(json.dumps(Run("one", sight=math.inf).as_dict()))).sight == math.inf


def test_a_file_gives_back_what_was_written():
    content = json.loads(json.dumps(RUN.as_dict()))
    assert content["learners"]["b"][1] == {"algorithm": "deep", "rate": 0.5, "weights": {"x": 1.0}, "depth": 3}
    assert load(Run, content) == RUN
    assert dump(RUN.learners) == content["learners"]


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"title": "one", "sizs": [1]},
        {"title": "one", "learners": {"a": [{"algorithm": "plain", "depth": 3}]}},
        {"title": "one", "learners": {"a": [{"algorithm": "deep", "depth": 0}]}},
    ],
)
def test_a_file_that_is_damaged_is_refused(content):
    with pytest.raises(ConfigurationError):
        load(Run, content)


def test_an_old_name_is_understood_with_a_warning():
    with pytest.warns(FutureWarning):
        assert load(Learner, {"algorithm": "plain", "speed": 0.25}) == Plain(rate=0.25)
    with pytest.warns(FutureWarning):
        assert assign(RUN, "learners.a.0.speed", "1").learners["a"] == (Plain(rate=1.0),)
    assert has(RUN, "learners.a.0.speed")


def test_two_runs_differ_in_paths():
    other = Run("two", {"a": (Plain(rate=0.25),), "b": RUN.learners["b"][:1]}, sizes=(4, 4), extra={"c": 1, "d": {}})
    assert diff(RUN, RUN) == {}
    assert diff(RUN, other) == {
        "title": ("one", "two"),
        "learners.a.0.rate": (0.5, 0.25),
        "learners.b.1.algorithm": ("deep", None),
        "learners.b.1.rate": (0.5, None),
        "learners.b.1.weights.x": (1.0, None),
        "learners.b.1.depth": (3, None),
        "sizes": ([8], [4, 4]),
        "extra.c": (None, 1),
    }


def test_a_path_is_assigned_what_a_command_line_says():
    assert assign(RUN, "title", "12").title == "12"  # a name made of digits
    assert assign(RUN, "sizes", "[4,5]").sizes == (4, 5)
    assert assign(RUN, "sight", "Infinity").sight == math.inf
    assert assign(RUN, "layout", "stream").layout == "stream"
    assert assign(RUN, "layout", "null").layout is None
    assert assign(RUN, "stop.after", "7").stop == Stop(7)
    assert assign(RUN, "stop", '{"after": 7}').stop == Stop(7)
    assert assign(RUN, "extra.free", "[1]").extra == {"free": (1,)}
    assert assign(RUN, "learners.b.1.weights.y", "2").learners["b"][1] == Deep(weights={"x": 1.0, "y": 2.0})
    assert diff(RUN, assign(RUN, "learners.b.1.depth", "4")) == {"learners.b.1.depth": (3, 4)}


def test_a_star_stands_for_every_entry_that_has_the_rest():
    assert set(diff(RUN, assign(RUN, "learners.*.*.rate", "1"))) == {
        "learners.a.0.rate",
        "learners.b.0.rate",
        "learners.b.1.rate",
    }
    assert set(diff(RUN, assign(RUN, "learners.*.*.depth", "5"))) == {"learners.b.1.depth"}
    assert has(RUN, "learners.*.*.depth")
    assert not has(RUN, "learners.a.*.depth")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("titel", "x"),
        ("learners.c.0.rate", "1"),
        ("learners.a.1.rate", "1"),
        ("learners.*.*.width", "1"),
        ("learners.a.0.rate", "2"),
        ("learners.b.1.weights.x", "-2"),
        ("learners.*.*", "2"),
        ("scale.more", "1"),
        ("stop.after.all", "1"),
        ("stop", "soon"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path, text):
    with pytest.raises(ConfigurationError):
        assign(RUN, path, text)


@pytest.mark.parametrize("over", ["learning=1,2", "phases.*.*.learner=1,2", "evaluation=1,2"])
def test_a_sweep_over_a_whole_part_of_a_run_is_refused(over, tmp_path):
    line = CommandLine("magrounding sweep", ("--env", "rtfm", "--over", over, "--out", str(tmp_path / "sweep")))
    assert line.run(sweep) == BAD_INPUT


def make_something(size: Count, colour="red", depth=2, until: float | None = None, link: "Elsewhere" = None):  # noqa: F821
    """Somebody else's: one annotation means nothing at run time."""


def make_annotated(size: Count = 3, colour="red", link=None):
    """Somebody else's."""


def test_keyword_arguments_of_a_function_are_options():
    loose, strict = options_of(make_something), options_of(make_annotated)
    assert [name for name, option in loose.items() if option.required] == ["size"]
    assert loose["colour"].check("blue") == "blue"
    assert strict["link"].check(object) is object  # of a default of None nothing is known
    for option in (loose["depth"], strict["size"]):
        with pytest.raises(ConfigurationError):
            option.parse("big")
    with pytest.raises(ConfigurationError):
        strict["size"].parse("0")
