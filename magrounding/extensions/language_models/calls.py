"""Calls: every question to a language model and its reply, in `calls.jsonl`, and what they took together.

A line is written as soon as a reply is there. A match or an evaluation that goes on reads them again instead of asking.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from magrounding.errors import CheckpointError
from magrounding.schema import Natural, NonNegative
from magrounding.storage import LINES, naming, require_bytes, write_atomic

MOVE, FACT = "move", "fact"
"""Kinds of questions."""
Count64 = Annotated[int, Meta(ge=0, le=2**62)]


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One question and its reply: a line of `calls.jsonl`.

    Attributes:
        key: of the question: a hash of all that it depends on, its place in the game included.
        lineup, player: who plays, as typed, and which of these players asks.
        seed, agent, step: of the game.
        question: "move" or "fact".
        attempt: 0, or 1 for a move that was asked for once more.
        model, temperature, max_tokens: of sampling.
        settings: a hash of all options that replies depend on.
        prompt, prompt_hash: the template.
        reply: what the model wrote, of a very long one its end; "" where the call failed.
        finish: the endpoint's reason for the reply's end.
        read, cached, written, reasoning: tokens, see `endpoint.Tokens`.
        seconds: until the reply was there, further tries included.
        tries, faults: how often it was asked for, and kind → number of faults.
        price: in the currency of the file of models; None where that names none.
        refused: reason why the reply is no legal move, "" where it is one.
        failure: reason why there is no reply.
        right: whether a fact was answered as the manual says; None for moves.
    """

    key: str
    lineup: str
    player: str
    seed: Count64
    agent: Natural
    step: Natural
    question: str
    attempt: Natural
    model: str
    temperature: NonNegative
    max_tokens: Natural
    settings: str
    prompt: str
    prompt_hash: str
    reply: str = ""
    finish: str = ""
    read: Natural = 0
    cached: Natural = 0
    written: Natural = 0
    reasoning: Natural = 0
    seconds: NonNegative = 0.0
    tries: Natural = 1
    faults: Mapping[str, int] = {}
    price: float | None = None
    refused: str = ""
    failure: str = ""
    right: bool | None = None


class Calls:
    """The calls of a folder: found again by their keys, and written one after another, by any number of threads.

    Args:
        path: the file; None keeps nothing.
        resume: read what is there, and remember what is written.

    Raises:
        CheckpointError: a file that holds something else, or is damaged.
    """

    def __init__(self, path: Path | None = None, *, resume: bool = True) -> None:
        self._path, self._resume, self._lock = path, resume, threading.Lock()
        self._known: dict[str, Call] = {}
        self._file: FileIO | None = None
        if path is not None and resume and path.exists():
            self._known = {call.key: call for call in _read(path)}

    def find(self, key: str) -> Call | None:
        """Return the call of a key; None for one that has no reply yet."""
        call = self._known.get(key)
        return None if call is None or call.failure else call

    def add(self, call: Call) -> None:
        """Append a call; OSError of the disk, with the file's name."""
        if self._path is None:
            return
        line = msgspec.json.encode(call) + b"\n"
        with self._lock, naming(self._path):
            if self._resume:
                self._known[call.key] = call
            if self._file is None:  # and stays open: each opening waits several times for the threads that play
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = FileIO(self._path, "ab")
                weakref.finalize(self, self._file.close)
            while line:
                line = line[self._file.write(line) :]

    def check(self, player: str, settings: str) -> None:
        """Raise a CheckpointError where a player had other options when it was asked before."""
        for call in self._known.values():
            if call.player == player and call.settings != settings:
                raise CheckpointError(
                    f"{self._path} holds calls of llm:{player} with another prompt or other options: name another "
                    "folder with --out"
                )

    def of(self, lineup: str) -> list[Call]:
        """Return the calls of a line-up that are remembered."""
        with self._lock:
            return [call for call in self._known.values() if call.lineup == lineup]


def totals_of(calls: Iterable[Call]) -> dict[str, Any]:
    """Add up calls; JSON-able.

    Returns:
        calls: how many; a call may have taken several tries.
        moves: asked for, each by one call or two.
        replies: to questions for moves.
        illegal, illegal_share: replies that were no legal move.
        substituted: moves that were played for the model, as its second reply was none either.
        failures: calls without a reply, each of which ended a game.
        tries, call_faults: of all calls; kind → number.
        read, cached, written, reasoning: tokens.
        seconds: of all calls, one behind the other.
        price: None where it is not known of every call.
        tokens_a_move, seconds_a_move: means of what calls for moves took.
        facts, right, fact_accuracy: questions about the manual that were answered, and those of them that were answered
            rightly; None where none was.
    """
    calls = list(calls)
    moves = [call for call in calls if call.question == MOVE]
    asked = sum(call.attempt == 0 for call in moves)
    replies = sum(not call.failure for call in moves)
    illegal = sum(bool(call.refused) for call in moves)
    prices = [call.price for call in calls]
    answered = [call.right for call in calls if call.right is not None]
    summed = "tries", "read", "cached", "written", "reasoning", "seconds"
    return {
        "calls": len(calls),
        "moves": asked,
        "replies": replies,
        "illegal": illegal,
        "illegal_share": illegal / max(1, replies),
        "substituted": sum(bool(call.refused) and call.attempt == 1 for call in moves),
        "failures": sum(bool(call.failure) for call in calls),
        "call_faults": dict(sorted(sum((Counter(call.faults) for call in calls), Counter[str]()).items())),
        **{name: sum(getattr(call, name) for call in calls) for name in summed},
        "price": None if not calls or None in prices else sum(price or 0.0 for price in prices),
        "tokens_a_move": sum(call.read + call.written for call in moves) / max(1, asked),
        "seconds_a_move": sum(call.seconds for call in moves) / max(1, asked),
        "facts": len(answered),
        "right": sum(answered),
        "fact_accuracy": sum(answered) / len(answered) if answered else None,
    }


def _read(path: Path) -> list[Call]:
    """Read a file; a last line that a kill cut short is removed from it."""
    data = require_bytes(path, LINES)
    whole, end, rest = data.rpartition(b"\n")
    if rest:
        write_atomic(path, whole + end)
    try:
        return msgspec.json.Decoder(Call).decode_lines(whole)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise CheckpointError(f"{path} is damaged, or holds no calls: {error}") from None
