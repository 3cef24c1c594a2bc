"""Games in PDDL on TextWorld's planner, worded by their text grammar; imported by `package.engine`.

TextWorld's own environment translates a game twice in every reset, and parses the grammar anew for every command that
it offers. Here a game is translated once on a machine, and what does not change in it is worded once; rules, state and
parsers are TextWorld's.
"""

from __future__ import annotations

import ast
import gzip
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from types import CodeType
from typing import Any

import fast_downward
from fast_downward.translate import normalize
from fast_downward.translate.pddl import conditions, f_expression
from fast_downward.translate.pddl_parser import lisp_parser, parsing_functions
from textworld.envs.pddl import textgen
from textworld.envs.pddl.logic import Atom, GameLogic, PddlState
from textworld.generator.game import EntityInfo
from textworld.logic import GameLogic as NoLogic
from textworld.logic import Placeholder, Proposition, Rule, State, Type, Variable

from magrounding.errors import ConfigurationError
from magrounding.single.alfworld import package
from magrounding.storage import json_text, read_bytes, unpacked, user_cache, write_atomic

GAMES = 512
"""Translated games that are kept, and with each the words of its commands."""

Bindings = Mapping[Placeholder, Any]
"""Placeholders of a template → the things that they stand for."""

_PLANNER = version("fast-downward-textworld")
"""Version of the planner: translations of another one are not read."""

_PARSERS = threading.RLock()
"""The parsers of the planner and of the grammar have one state a process."""
_TASK = re.compile(r'"task":\s*\[\s*\{\s*"rhs":\s*"([^"\\]*)"\s*\}\s*\]')
"""Rule of a grammar that states the task, in which the games of ALFWorld differ."""
_ALLOWED = (ast.Expression, ast.Name, ast.Attribute, ast.Load, ast.Constant, ast.BinOp, ast.Add, ast.BoolOp, ast.Or)
"""Nodes of an expression of a text grammar: names of things, put together."""


@dataclass(frozen=True)
class Game:
    """A translated game: what all its episodes have in common.

    Attributes:
        logic: actions, types and text grammar.
        task: the parsed PDDL.
        sas: the task in the planner's format.
        fluents: predicates that an action changes, or that follow from others.
        things: id → name and articles of each, an EntityInfo, filled by the first episode.
        worded: (template, things) → words of a command that depend on no fluent.
    """

    logic: GameLogic
    task: Any
    sas: bytes
    fluents: frozenset[str]
    things: dict[str, Any] = field(default_factory=dict)
    worded: dict[tuple[Any, ...], str] = field(default_factory=dict)


@lru_cache(maxsize=GAMES)
def translate(domain: str, problem: str, grammar: str) -> Game:
    """Translate a game; ConfigurationError where its text grammar computes something."""
    logic = _read_rules(domain, grammar)
    with _PARSERS, package.untouched():
        task, sas = _to_sas(domain, problem)
    rules = [rule.rhs for rules in logic.grammar._rules.values() for rule in rules]
    templates = [_parsed(text) for each in logic.actions.values() for text in (each.template, each.feedback_rule)]
    for symbol in _within(symbol for symbols in (*rules, *templates) for symbol in symbols):
        if isinstance(symbol, textgen.EvalSymbol):
            compile_expression(symbol.expression)
    for kind in task.types:
        with suppress(ValueError):  # known already
            logic.types.add(Type(kind.name, kind.supertype_names))
    changed = {effect.literal.predicate for action in task.actions for effect in action.effects}
    return Game(logic, task, sas, frozenset(changed | {axiom.name for axiom in task.axioms}))


def _to_sas(domain: str, problem: str) -> tuple[Any, bytes]:
    """Return the parsed task, and it in the planner's format, which is computed once on a machine and kept on disk."""
    name = sha256(json_text([_PLANNER, domain, problem]).encode()).hexdigest()
    kept = user_cache() / "alfworld" / f"{name}.sas.gz"
    sas = b""
    with suppress(OSError, EOFError, ValueError, zlib.error):  # there is none yet, or it is damaged
        sas = unpacked(read_bytes(kept))
    if not sas:
        translated: Any = fast_downward.pddl2sas(domain, problem)  # declared as a string
        task, text = translated
        with suppress(OSError):  # where nothing can be kept, the next process computes it again
            write_atomic(kept, gzip.compress(text.encode(), 6, mtime=0))
        return task, text.encode()
    lists = (lisp_parser.parse_nested_list(text.split("\n")) for text in (domain, problem))
    task = parsing_functions.parse_task(*lists)
    normalize.normalize(task)
    return task, sas


def _read_rules(domain: str, grammar: str) -> GameLogic:
    """Return actions and grammar of a game; what games have in common is parsed once."""
    task = _TASK.search(grammar)
    if task is None or grammar.count('"task"') > 1:
        return _parse_rules(domain, grammar)
    start, end = task.span(1)
    common = _parse_rules(domain, grammar[:start] + "nothing" + grammar[end:])
    with _PARSERS:
        logic = GameLogic(domain, "")
    logic.actions.update(common.actions)
    logic.grammar.update(common.grammar)
    logic.grammar._rules["task"] = [textgen.ProductionRule("task", list(_parsed(task[1])), condition="")]
    return logic


@lru_cache(maxsize=4)
def _parse_rules(domain: str, grammar: str) -> GameLogic:
    with _PARSERS, package.untouched():
        return GameLogic(domain, grammar)


def plan(domain: str, problem: str, episode: Episode) -> list[str]:
    """Return the planner's commands from the state of an episode to the goal."""
    with _PARSERS, package.untouched():
        translated: Any = fast_downward.pddl2sas(domain, problem, optimize=True)
        episode.state.downward_lib.load_sas_replan(translated[1].encode())
        return list(episode.state.replan(episode.game.things))


class GameState(PddlState):
    """TextWorld's state at the start of a translated game, with a copy of the planner's library of its own."""

    def __init__(self, library: Any, game: Game) -> None:
        State.__init__(self, NoLogic())
        self._logic = game.logic
        self._actions = {action.name: action for action in game.task.actions}
        self.task = game.task
        self.downward_lib = library
        self.name2type = {thing.name: thing.type_name for thing in game.task.objects}
        self.add_facts(self._first_facts())
        library.load_sas(game.sas)
        atoms = (Atom * library.get_state_size())()
        library.get_state(atoms)
        facts = (atom.get_fact(self.name2type) for atom in atoms)
        self.add_facts(fact for fact in facts if not fact.is_negation)

    def _first_facts(self) -> Iterator[Proposition]:
        for each in self.task.init:
            if isinstance(each, conditions.Atom):
                name, things = each.predicate, each.args
            else:
                assert isinstance(each, f_expression.Assign)
                name, things = str(each.expression.value), each.fluent.args
                if each.fluent.symbol == "total-cost" or name.isdigit():  # costs and distances
                    continue
            if name != "=":
                yield Proposition(name, [Variable(thing, self.name2type[thing]) for thing in things])


class Episode:
    """One play of a game, with a copy of the planner's library of its own.

    `demangle` makes the names of all things, by id, from their infos; `actions` are those of each command.
    """

    def __init__(self, game: Game, library: Any, demangle: Any) -> None:
        self.game = game
        self.state = GameState(library, game)
        if not game.things:
            found = (each for fact in self.state.facts for each in fact.arguments)
            things: dict[str, Any] = {each.name: EntityInfo(each.name, each.type) for each in found}
            names = demangle(game_infos=things)
            for thing in things.values():
                thing.name, thing.definite, thing.indefinite = names.demangle_alfred_name(thing.id), "the", "a"
            game.things.update(things)
        self._list_actions()

    def play(self, command: str) -> str | None:
        """Play a command and return the answer; None for one that cannot be typed now."""
        action = self.actions.get(command.strip())
        if action is None:
            return None
        self.state.apply(action)
        answer = self.write(action.feedback_rule, action.mapping)
        self._list_actions()
        return answer

    def write(self, template: str, bindings: Bindings) -> str:
        """Return the text of a template; CSGUnknownSymbolError where the grammar has no rule for a symbol."""
        return "".join(self._words(_parsed(template), bindings))

    def _list_actions(self) -> None:
        self.actions: dict[str, Any] = {}
        names = {id: thing.name for id, thing in self.game.things.items()}
        for action in self.state.all_applicable_actions():
            words = self._command(action.command_template, action.mapping)
            self.actions.setdefault(words.format(**names), action)

    def _command(self, template: str, bindings: Bindings) -> str:
        """Return the words of a command, which are kept unless they depend on a fluent."""
        if "#" in template or _predicates(template) & self.game.fluents:
            return self.write(template, bindings)
        key = (template, *((place.name, thing.name) for place, thing in bindings.items()))
        if key not in self.game.worded:
            self.game.worded[key] = self.write(template, bindings)
        return self.game.worded[key]

    def _words(self, symbols: Iterable[textgen.Symbol], bindings: Bindings) -> Iterator[str]:
        for symbol in symbols:
            if isinstance(symbol, textgen.NonterminalSymbol):
                yield from self._words(self._rule(symbol, bindings), bindings)
            elif isinstance(symbol, textgen.EvalSymbol):
                things = {place.name: self.game.things[thing.name] for place, thing in bindings.items()}
                yield str(eval(compile_expression(symbol.expression), {"__builtins__": {}}, things))
            elif isinstance(symbol, textgen.ConditionalSymbol):
                yield from self._each(symbol, bindings)
            elif isinstance(symbol, textgen.ListSymbol):
                yield from self._listed(symbol.symbol, bindings)
            else:
                yield str(symbol)

    def _rule(self, symbol: textgen.NonterminalSymbol, bindings: Bindings) -> list[textgen.Symbol]:
        """Return the right side of the first rule of a symbol whose condition holds."""
        for rule in self.game.logic.grammar._rules.get(str(symbol), ()):
            if not rule.condition or any(True for _ in self._assignments(rule.condition, bindings)):
                return rule.rhs
        raise textgen.CSGUnknownSymbolError(symbol)

    def _each(self, symbol: textgen.ConditionalSymbol, bindings: Bindings) -> Iterator[str]:
        """Yield the text of a symbol for each assignment that fulfils its condition."""
        for each in self._assignments(symbol.given, bindings) if symbol.given else (bindings,):
            yield "".join(self._words([symbol.expression], each))

    def _listed(self, symbol: Any, bindings: Bindings) -> Iterator[str]:
        """Yield what a list holds, with the grammar's separators."""
        conditional = isinstance(symbol, textgen.ConditionalSymbol)
        items = list(self._each(symbol, bindings) if conditional else self._words([symbol], bindings))
        if not items:
            yield self.write("#list_empty#", bindings)
        for place, item in enumerate(items):
            if place:
                yield self.write("#list_last_separator#" if place == len(items) - 1 else "#list_separator#", bindings)
            yield item

    def _assignments(self, condition: str, bindings: Bindings) -> Iterable[Bindings]:
        return self.state.all_assignments(_query(condition), bindings)


@lru_cache(maxsize=4096)
def compile_expression(source: str) -> CodeType:
    """Compile an expression of a text grammar, which may put names of things together and nothing else.

    A ConfigurationError where it does more; a game from elsewhere could otherwise run whatever it likes.
    """
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except SyntaxError:
        tree = ast.Pass()
    nodes = list(ast.walk(tree))
    hidden = any(isinstance(node, ast.Attribute) and node.attr.startswith("_") for node in nodes)
    if hidden or not all(isinstance(node, _ALLOWED) for node in nodes):
        raise ConfigurationError(
            f"the text grammar of a game computes {source!r}, and may only put names together: play other games"
        )
    return compile(tree, "<text grammar>", "eval")  # pyright: ignore[reportArgumentType]  an Expression


_query = lru_cache(maxsize=4096)(Rule.parse_conjunctive_query)


@lru_cache(maxsize=4096)
def _parsed(template: str) -> tuple[textgen.Symbol, ...]:
    """Return the symbols of a template, which are never changed here."""
    with _PARSERS:
        return tuple(textgen._parse_and_convert(template, rule_name="symbols"))


@lru_cache(maxsize=4096)
def _predicates(template: str) -> frozenset[str]:
    """Return the predicates on which the words of a template depend."""
    given = [symbol.given for symbol in _within(_parsed(template)) if isinstance(symbol, textgen.ConditionalSymbol)]
    return frozenset(each.signature.name for source in given if source for each in _query(source).preconditions)


def _within(symbols: Iterable[Any]) -> Iterator[Any]:
    """Yield some symbols and all within them."""
    for symbol in symbols:
        yield symbol
        inner = (getattr(symbol, "expression", None), symbol.symbol)
        yield from _within(each for each in inner if isinstance(each, textgen.Symbol))
