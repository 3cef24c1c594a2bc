"""What TextWorld computes again and again, remembered: the same texts and states, many times sooner.

The engine parses the text grammar anew for every command that it offers, words each of them anew in every step, and
translates a game's PDDL twice in every reset, the second time for the planner. What is replaced here depends on its
arguments only, or on facts that no action of the game changes; the engine itself is the package's. The planner's
translation is left out, and made when the planner is asked.
"""

from __future__ import annotations

import ast
import copy
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType, SimpleNamespace
from typing import Any

from magrounding.errors import ConfigurationError
from magrounding.single.alfworld import package
from magrounding.single.alfworld.library import reusing

GAMES = 512
"""Games whose translation, and the words of whose commands, are kept."""

_LOCK = threading.RLock()
_ALLOWED = (ast.Expression, ast.Name, ast.Attribute, ast.Load, ast.Constant, ast.BinOp, ast.Add, ast.BoolOp, ast.Or)
"""What an expression of a text grammar may consist of: names of things, put together. TextWorld would run anything."""


@contextmanager
def remembering() -> Iterator[None]:
    """Within it, the engine uses what has been computed before; outside, the package is as it was."""
    changes = _changes()
    with _LOCK, package.untouched():
        before = [(module, name, getattr(module, name)) for module, name, _ in changes]
        for module, name, value in changes:
            setattr(module, name, value)
        try:
            yield
        finally:
            for module, name, value in before:
                setattr(module, name, value)


@lru_cache(maxsize=1)
def _changes() -> list[tuple[Any, str, Any]]:
    """(module, name, what takes the place) of each function."""
    package.engine()
    text, logic = (import_module(f"textworld.envs.pddl.{name}") for name in ("textgen", "logic"))
    planner, rules = import_module("fast_downward"), import_module("textworld.logic").Rule
    query = lru_cache(maxsize=4096)(rules.parse_conjunctive_query)
    return [
        (text, "_parse_and_convert", _parse_once(text, text._parse_and_convert)),
        (text, "Rule", SimpleNamespace(parse_conjunctive_query=query)),
        (text, "copy_context", _copy_context),
        (text.ContextSensitiveGrammar, "derive", _word_once(text, text.ContextSensitiveGrammar.derive, query)),
        (logic, "_parse_and_convert", lru_cache(maxsize=GAMES)(logic._parse_and_convert)),
        (planner, "pddl2sas", _translate_once(planner.pddl2sas)),
        (planner, "load_lib", reusing(planner.load_lib)),
    ]


def _translate_once(translate: Callable[..., tuple[Any, str]]) -> Callable[..., tuple[Any, str]]:
    """The translator of PDDL; for the planner, whom the game does not need, it gives out nothing."""
    kept = lru_cache(maxsize=GAMES)(translate)

    def once(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> tuple[Any, str]:
        return (None, "") if optimize else kept(domain, problem)

    return once


def _word_once(text: Any, derive: Callable[..., str], query: Callable[[str], Any]) -> Callable[..., str]:
    """What words a text; the words of a command are kept for a game, unless they depend on facts that change in it."""

    @lru_cache(maxsize=GAMES)
    def words_of(problem: str) -> dict[tuple[Any, ...], str]:
        return {}

    @lru_cache(maxsize=4096)
    def asks(template: str) -> frozenset[str]:
        """The predicates on which the words of a command depend."""
        given = [symbol.given for symbol in _inner(text._parse_and_convert(template, rule_name="symbols"), text)]
        return frozenset(each.signature.name for source in given if source for each in query(source).preconditions)

    def once(grammar: Any, start: str, context: Any = MappingProxyType({})) -> str:
        if not context or "#" in start or asks(start) & _changing(context["state"]):
            return derive(grammar, start, context)
        known = words_of(context["state"].pddl_problem)
        key = (start, *((place.name, thing.name) for place, thing in context["mapping"].items()))
        if key not in known:
            known[key] = derive(grammar, start, context)
        return known[key]

    return once


def _inner(symbols: Iterable[Any], text: Any) -> Iterator[Any]:
    """The conditional symbols among some symbols and within them."""
    for symbol in symbols:
        if isinstance(symbol, text.ConditionalSymbol):
            yield symbol
        inner = (getattr(symbol, "expression", None), symbol.symbol)
        yield from _inner([each for each in inner if isinstance(each, text.Symbol)], text)


def _changing(state: Any) -> frozenset[str]:
    """The predicates that an action of a game changes, or that follow from others."""
    found = state.__dict__.get("_changing")
    if found is None:
        effects = (effect.literal.predicate for action in state.task.actions for effect in action.effects)
        found = state._changing = frozenset((*effects, *(axiom.name for axiom in state.task.axioms)))
    return found


def _parse_once(text: Any, parse: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The parser of texts; who gets its symbols changes them, so each time there are new ones."""

    @lru_cache(maxsize=4096)
    def parsed(source: str, rule_name: str) -> tuple[Any, ...]:
        symbols = tuple(parse(source, rule_name=rule_name))
        for symbol in symbols:
            check(symbol)
        return symbols

    def check(symbol: Any) -> None:
        if isinstance(symbol, text.EvalSymbol):
            check_expression(symbol.expression)
        for inner in (getattr(symbol, "expression", None), symbol.symbol):
            if isinstance(inner, text.Symbol):
                check(inner)

    def renew(symbol: Any) -> Any:
        twin = copy.copy(symbol)
        if isinstance(twin, text.ListSymbol):
            twin.symbol = copy.copy(twin.symbol)
        return twin

    def again(source: str, rule_name: str, trace: bool = False) -> list[Any]:
        return [renew(symbol) for symbol in parsed(source, rule_name)]

    return again


def check_expression(source: str) -> None:
    """Refuse an expression of a text grammar that does more than to name things.

    Raises:
        ConfigurationError: it does; a game from elsewhere could otherwise run whatever it likes.
    """
    try:
        nodes = list(ast.walk(ast.parse(source.strip(), mode="eval")))
    except SyntaxError:
        nodes = [ast.Pass()]
    hidden = any(isinstance(node, ast.Attribute) and node.attr.startswith("_") for node in nodes)
    if hidden or not all(isinstance(node, _ALLOWED) for node in nodes):
        raise ConfigurationError(
            f"the text grammar of a game computes {source!r}, and may only put names together: play other games"
        )


def _copy_context(context: dict[str, Any]) -> dict[str, Any]:
    """The engine's, which also copies the things that names stand for; they are never changed."""
    return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}
