"""Terminal: people play in a text terminal, over ssh as well; everything is done by keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from magrounding.errors import InvalidAction
from magrounding.play.action_names import letters_of
from magrounding.play.session import Move, Session

_ARROWS = ("up", "down", "left", "right")
_FEW = 12
"""Moves that each have a key; more are chosen from a list."""
_STYLES = ((r"\d", "bold cyan"), (r"[A-Z]", "bold red"), (r"[a-z]", "bold green"), (r"#+", "bright_black"))
"""Signs on a map: agents, monsters, things, walls."""
_TEXTS = re.compile(r"\n\n(?=goal:|manual:)")
"""Where, below a map, the texts begin."""


class Terminal(App[None]):
    """A session on a terminal.

    A letter or an arrow moves the agent whose person is asked; where there are many moves, typing filters a list and
    Enter takes its first. Page up and page down look at other moments. The footer names the other keys.

    Args:
        session: the game.
        save: is called with every game that has ended.
        pause: seconds between two steps where only agents play.
    """

    CSS = """
    #game { width: 3fr; padding: 0 1; }
    #side { width: 2fr; padding: 0 1; border-left: solid $primary; }
    #moves { height: auto; max-height: 14; border: none; padding: 0; }
    """
    AUTO_FOCUS = ""
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q,escape", "quit", "leave"),
        Binding("ctrl+r", "again", "same seed"),
        Binding("ctrl+n", "following", "next seed"),
        Binding("pageup", "look(-1)", "back"),
        Binding("pagedown", "look(1)", "forth"),
        Binding("ctrl+p", "pause", "pause"),
    ]

    def __init__(self, session: Session, save: Callable[[Session], object] = lambda session: None, pause: float = 0.5):
        super().__init__()
        self.session, self._save = session, save
        self._pause, self._paused = pause, False
        self._at = 0
        names = session.vec.spec.actions.names
        self._listed = len(names) > _FEW
        self._letters = {} if self._listed else letters_of(names)
        self._keys = self._letters | {name: action for action, name in enumerate(names) if name in _ARROWS}

    def compose(self) -> ComposeResult:
        with Horizontal():
            with VerticalScroll(id="game", can_focus=False):
                yield Static(id="picture")
            with VerticalScroll(id="side", can_focus=False):
                yield Static(id="status")
                yield Input(id="filter", placeholder="type to filter, Enter takes the first")
                yield OptionList(id="moves")
                yield Static(id="last")
                yield Static(id="texts")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#moves", OptionList).can_focus = False
        self._refresh()
        self.set_interval(self._pause, self._play_on)

    def on_key(self, event: events.Key) -> None:
        """Move, where a key stands for a move."""
        action = self._keys.get(event.key if event.key in _ARROWS else (event.character or ""))
        if action is not None and self._turn is not None:
            event.stop()
            self._choose(self._turn, action)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the moves that contain what was typed."""
        self._offer(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the first of them."""
        found = self._found(event.value)
        if found and self._turn is not None:
            event.input.value = ""
            self._choose(self._turn, found[0].action)

    def action_again(self) -> None:
        """The same game from its start."""
        self.session.begin(self.session.seed)
        self._at = 0
        self._refresh()

    def action_following(self) -> None:
        """The game of the next seed."""
        self.session.begin(self.session.seed + 1)
        self._at = 0
        self._refresh()

    def action_look(self, by: int) -> None:
        """Look at another moment."""
        self._at = max(0, min(len(self.session.views) - 1, self._at + by))
        self._refresh()

    def action_pause(self) -> None:
        """Stop agents who play alone, or let them go on."""
        self._paused = not self._paused
        self._refresh()

    @property
    def _turn(self) -> int | None:
        """The agent whose person chooses next."""
        return next(iter(self.session.waiting), None)

    def _choose(self, agent: int, action: int) -> None:
        try:
            self.session.choose(agent, action)
        except InvalidAction as error:
            self.notify(str(error), severity="warning")
            return
        self._advance()

    def _advance(self) -> None:
        if self.session.advance():
            self._at = len(self.session.views) - 1
            if self.session.now.over:
                self._save(self.session)
        self._refresh()

    def _play_on(self) -> None:
        """Agents among themselves: a step, unless they are stopped or an earlier moment is looked at."""
        if not self.session.people and not self._paused and self._at == len(self.session.views) - 1:
            self._advance()

    def _found(self, typed: str) -> list[Move]:
        moves = [] if self._turn is None else self.session.moves(self._turn)
        return [move for move in moves if typed.strip().lower() in move.name]

    def _offer(self, typed: str = "") -> None:
        moves = self.query_one("#moves", OptionList)
        moves.clear_options()
        keys = {action: letter for letter, action in self._letters.items()}
        for move in self._found(typed):
            moves.add_option(Option(move.name if self._listed else f"{keys[move.action]}  {move.name}"))

    def _refresh(self) -> None:
        view = self.session.views[self._at]
        picture, *texts = _TEXTS.split(view.picture, maxsplit=1)
        self.query_one("#picture", Static).update(coloured(picture))
        self.query_one("#texts", Static).update(coloured("\n".join([*texts, ""])))
        listed = self._listed and self._turn is not None
        self.query_one("#filter", Input).display = listed
        if listed:
            self.query_one("#filter", Input).focus()
        self._offer()
        self.query_one("#status", Static).update(self._status())
        self.query_one("#last", Static).update("\n".join(["", *view.last]))

    def _status(self) -> Text:
        session, view = self.session, self.session.views[self._at]
        lines = [f"seed {session.seed}, step {view.step}"]
        if view.over:
            lines.append("The game is won." if view.won else f"The game is over, score {view.score:g}.")
        elif self._at < len(session.views) - 1:
            lines.append(f"looking back from step {session.now.step}")
        elif self._turn is not None:
            lines.append(f"agent {self._turn} moves")
        elif self._paused:
            lines.append("stopped")
        return Text("\n".join(lines) + "\n", style="bold")


def coloured(shown: str) -> Text:
    """A picture with its signs in colour: those of a map's lines, and the one that begins a line of its legend."""
    text, begin = Text(shown), 0
    for line in shown.split("\n"):
        words = line.split()
        if line.startswith(("step ", "goal:", "manual:", "task:")):
            text.stylize("bold", begin, begin + len(line))
        elif words and (max(map(len, words)) < 4 or "#" in line):
            for pattern, style in _STYLES:
                for sign in re.finditer(pattern, line):
                    text.stylize(style, begin + sign.start(), begin + sign.end())
        elif words and len(words[0]) == 1:
            for pattern, style in _STYLES:
                if re.match(pattern, line):
                    text.stylize(style, begin, begin + 1)
        begin += len(line) + 1
    return text
