"""Terminal: people play in a text terminal, or watch, over ssh as well; everything is done by keys."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TextIO

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from magrounding.errors import ConfigurationError, InvalidAction, MagroundingError
from magrounding.teams.action_names import letters_of
from magrounding.teams.session import Move, Session, View
from magrounding.text_view import LEFT_OUT, MANUAL, OWN, joined

_ARROWS = ("up", "down", "left", "right")
_FEW = 12
"""Moves that each have a key; more are chosen from a list."""
_SHORT = 20
"""Letters of a move that has no line to itself."""
_STYLES = ((rf"\d|{OWN}", "bold cyan"), (r"[A-Z]", "bold red"), (r"[a-z]", "bold green"), (r"#+", "bright_black"))
"""Signs on a map: numbers of rows and the agent, things, walls."""
_BARS = "▁▂▃▄▅▆▇█"
CLAIMS = "CLAIMS"
"""Title of what agents claim for themselves, which no agent sees."""
_MANUAL = MANUAL.upper()


class Terminal(App[None]):
    """A session on a terminal.

    A letter or an arrow moves the agent whose person is asked; where there are many moves, typing filters a list and
    Enter takes its first. Page up and page down look at other moments; where no person plays, page down behind the last
    one plays a single step. Tab chooses the agent whose legal moves are shown and, where its network reports it,
    its attention to the statements of the manual. The footer names the other keys.

    `save` is called at the end of every game. Where only agents play there are `pause` seconds between two steps, or,
    if it begins `paused`, they wait for a key.
    """

    CSS = """
    #game { width: 3fr; padding: 0 1; }
    #side { width: 2fr; padding: 0 1; border-left: solid $primary; }
    .-narrow #game, .-narrow #side { width: 1fr; }
    #status { text-wrap: nowrap; text-overflow: ellipsis; }
    #moves { height: auto; max-height: 14; border: none; padding: 0; }
    """
    AUTO_FOCUS = ""
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012  so in App
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q,escape", "quit", "leave"),
        Binding("ctrl+r", "begin(0)", "again"),
        Binding("ctrl+n", "begin(1)", "next seed"),
        Binding("pageup", "look(-1)", "back", key_display="pgup", priority=True),
        Binding("pagedown", "look(1)", "forth", key_display="pgdn", priority=True),
        Binding("ctrl+p", "pause", "pause"),
        Binding("tab", "agent", "agent", priority=True),
        Binding("ctrl+down", "scroll(1)", "scroll", key_display="^↓"),
        Binding("ctrl+up", "scroll(-1)", show=False),
        Binding("home", "look(-1000000)", show=False),
        Binding("end", "look(1000000)", show=False),
    ]

    def __init__(
        self,
        session: Session,
        save: Callable[[Session], object] = lambda session: None,
        pause: float = 0.5,
        *,
        paused: bool = False,
    ) -> None:
        super().__init__()
        self.session, self._save = session, save
        self._pause, self._paused = pause, paused
        readers = (agent for agent, weights in session.now.attention.items() if weights is not None)
        self._at, self._agent = 0, next(readers, 0)
        names = session.vec.spec.actions.names
        self._listed = len(names) > _FEW
        self._letters = {} if self._listed else letters_of(names)
        self._keys = self._letters | {name: action for action, name in enumerate(names) if name in _ARROWS}

    def run(self, *args: Any, **options: Any) -> None:
        """Show the game until people leave it.

        ConfigurationError without a terminal, which would be waited for, or where it ended with an error.
        """
        if not (_is_terminal(sys.__stdin__) and _is_terminal(sys.__stderr__)):  # textual's own
            raise ConfigurationError(
                "a game is shown at a terminal, and input or error output is a file or a pipe here: call it without "
                "redirection, or let agents play with `magrounding match`"
            )
        super().run(*args, **options)
        if self.return_code:
            raise ConfigurationError("the terminal ended with an error, see above")

    def compose(self) -> ComposeResult:
        with Horizontal():
            with VerticalScroll(id="game", can_focus=False):
                yield Static(id="picture")
            with VerticalScroll(id="side", can_focus=False):
                yield Static(id="status")
                yield Static(id="keys")
                yield Input(id="filter", placeholder="filter; Enter takes the first", compact=True)
                yield OptionList(id="moves", markup=False)
                yield Static(id="last", markup=False)
                yield Static(id="texts")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one("#moves", OptionList).can_focus = False
        self._refresh()
        self.set_interval(self._pause, self._play_on)

    def on_key(self, event: events.Key) -> None:
        action = self._keys.get(event.key if event.key in _ARROWS else (event.character or ""))
        if action is not None and self._turn is not None:
            event.stop()
            self._choose(self._turn, action)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._offer(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        found = self._found(event.value)
        if found and self._turn is not None:
            event.input.value = ""
            self._choose(self._turn, found[0].action)

    def action_begin(self, by: int) -> None:
        """Begin the game of this seed, or of one that comes `by` so many later."""
        try:
            self.session.begin(self.session.seed + by)
        except MagroundingError as error:  # there is no saved game of that seed
            self.notify(str(error), severity="warning", markup=False)
            return
        self._at = 0
        self._refresh()

    def action_look(self, by: int) -> None:
        """Look at another moment; behind the last one, let agents who play alone do a single step."""
        last = len(self.session.views) - 1
        if by == 1 and self._at == last and self._unattended:
            self._paused = True
            self._advance()
            return
        self._at = max(0, min(last, self._at + by))
        self._refresh()

    def action_pause(self) -> None:
        self._paused = not self._paused
        self._at = self._at if self._paused else len(self.session.views) - 1
        self._refresh()

    def action_agent(self) -> None:
        self._agent = (self._agent + 1) % self.session.vec.num_agents
        self._refresh()

    def action_scroll(self, by: int) -> None:
        for pane in ("#game", "#side"):
            self.query_one(pane).scroll_relative(y=by * max(1, self.size.height // 3), animate=False)

    @property
    def _turn(self) -> int | None:
        """The agent whose person chooses next."""
        return next(iter(self.session.waiting), None)

    @property
    def _unattended(self) -> bool:
        """True when agents play on alone: no person plays, or those who do have no agent that still acts."""
        people, living = self.session.people, self.session.living
        return not people or (bool(living) and not set(people) & set(living))

    def _choose(self, agent: int, action: int) -> None:
        try:
            self.session.choose(agent, action)
        except InvalidAction as error:
            self.notify(str(error), severity="warning", markup=False)
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
        if not self.query("#picture"):  # the app ends: its widgets are gone before its timers
            return
        if self._unattended and not self._paused and self._at == len(self.session.views) - 1:
            self._advance()

    def _found(self, typed: str) -> list[Move]:
        moves = [] if self._turn is None else self.session.moves(self._turn)
        return [move for move in moves if typed.strip().lower() in move.name]

    def _offer(self, typed: str = "") -> None:
        moves = self.query_one("#moves", OptionList)
        moves.clear_options()
        moves.display = self._listed and self._turn is not None
        moves.add_options([Option(move.name) for move in self._found(typed)])

    def _refresh(self) -> None:
        view = self.session.views[self._at]
        looker = self._agent if self._turn is None else self._turn
        words = dict(view.words[looker])
        lasting = map(str.upper, (*self.session.vec.spec.lasting_texts, MANUAL))
        rules = {name: words.pop(name) for name in lasting if name in words}
        picture = {f"WHAT AGENT {looker} SEES": [], **words, **({CLAIMS: claimed} if (claimed := claims(view)) else {})}
        if _MANUAL in rules:  # the longest comes last
            rules[_MANUAL] = rules.pop(_MANUAL)
        legend = f"bars: what agent {self._agent} goes by"
        alike = view.statements.get(looker) == view.statements.get(self._agent)  # else they read different manuals
        for name, content in {
            "picture": coloured(joined(picture)),
            "texts": marked(joined(rules), view.attention.get(self._agent) if alike else None, legend),
            "status": self._status(view),
            "keys": self._legal(),
            "last": "\n".join(["", *view.last, ""] if view.last else [""]),
        }.items():
            self.query_one(f"#{name}", Static).update(content)
        self.query_one("#keys").display = not self._listed
        typed = self.query_one("#filter", Input)
        typed.display = self._listed and self._turn is not None
        if typed.display:
            typed.focus()
        self._offer()

    def _status(self, view: View) -> Text:
        session = self.session
        text = Text(f"seed {session.seed}, step {view.step}\n", style="bold")
        if view.over:
            text.append("The game is won.\n" if view.won else f"The game is over, score {view.score:g}.\n")
        elif self._at < len(session.views) - 1:
            text.append(f"looking back from step {session.now.step}\n")
        elif self._turn is not None:
            text.append(f"agent {self._turn} moves\n")
        elif self._paused:
            text.append("stopped\n")
        for agent, player in enumerate(session.header.players):
            text.append(f"{'▸' if agent == self._agent else ' '} {agent} {player}\n", style="not bold")
        return text

    def _legal(self) -> Text:
        """The legal moves, with their keys, of the agent whose person chooses next, or of the one that is chosen."""
        text, mover = Text(), self._agent if self._turn is None else self._turn
        if self._letters and self._at == len(self.session.views) - 1 and mover in self.session.living:
            keys = {action: letter for letter, action in self._letters.items()}
            for move in self.session.moves(mover):
                text.append("\n" * (len(move.name) > _SHORT) + keys[move.action], style="bold cyan")
                text.append(f":{move.name}  ")
        return text


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def claims(view: View) -> list[str]:
    """Return what each agent claims for itself, by the figures that the scene has; nothing where none does."""
    figures = [] if view.scene is None else [each for each in view.scene.figures if each.kind != "agent"]
    return [
        f"agent {agent}: "
        + (", ".join(f"{each.quality} {each.name}".strip() for each in figures if marks[each.row, each.column] == 1))
        for agent, marks in view.claims.items()
    ]


def coloured(shown: str) -> Text:
    """Colour the signs of a picture: those of a map's lines, and the one that begins a line of its legend."""
    lines = list(map(Text, shown.split("\n")))
    for line in lines:
        words = line.plain.split()
        if line.plain.isupper() and len(words[0]) > 1:
            line.stylize("bold")
        elif words and ((of_map := max(map(len, words)) < 4 or "#" in line) or len(words[0]) == 1):
            for pattern, style in _STYLES:
                line.highlight_regex(pattern if of_map else f"^({pattern})", style)
    return Text("\n").join(lines)


def marked(texts: str, weights: Sequence[float] | None, legend: str) -> Text:
    """Colour goal and manual, with a bar before each statement (a line below MANUAL) that is as high as its weight.

    Without weights there are no bars; their legend stands behind the title.
    """
    if weights is None:
        return coloured(texts)
    before, _, statements = texts.partition(_MANUAL)
    text = coloured(before + _MANUAL).append(f" {legend}\n", style="yellow")
    most, even = max(weights, default=0.0), 1 / max(1, len(weights))
    written = [line for line in statements.strip("\n").split("\n") if line != LEFT_OUT]
    for statement, weight in zip(written, weights, strict=False):
        bar = _BARS[round(weight / most * (len(_BARS) - 1))] if most > 0 else _BARS[0]
        # Heavier than all would be if they weighed the same.
        text.append(f"{bar} ", style="yellow").append(f"{statement}\n", style="bold" if weight > even else "")
    return text
