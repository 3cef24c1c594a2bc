"""Games in the browser: `magrounding serve --env ma_rtfm`, then http://127.0.0.1:8000/."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from msgspec import Meta

from magrounding.cli.command import CommandLine, items
from magrounding.cli.game_arguments import LanguageModelArguments
from magrounding.cli.options import ENV, Paths, assignments
from magrounding.errors import ConfigurationError, check_choice, needed
from magrounding.registry import ENVS, env_entry
from magrounding.schema import Count
from magrounding.teams.lineup import CALLS_FILE, HUMAN, AskedPlayers, PlayerSpec, keep_calls
from magrounding.threads import ThreadPlan, using

if TYPE_CHECKING:
    from magrounding.extensions.people.web.offers import Offers
    from magrounding.extensions.people.web.participants import Participants
    from magrounding.extensions.people.web.server import Server

LOCAL = "127.0.0.1"
_SWITCH_SECONDS = 0.0005
"""Seconds after which a thread that computes lets another one run: the event loop waits for all threads of games."""


@dataclass(frozen=True)
class Arguments(LanguageModelArguments):
    """Serve a page on which people and agents play together, watch, and look at saved games."""

    env: tuple[str, ...] = ()
    """Environment ids that can be played. (default: all)"""
    player: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """One more player that visitors can choose, NAME=PLAYER, such as mine=run:DIR, mine=script:FILE or mine=llm:NAME (a
    language model of --llm, at the host's cost); may be repeated. People, random, oracle and the package's own teams
    are always there."""
    standin: str = ""
    """Name of the player that stands in for a person who is away. (default: the oracle, or the simulator's own bot;
    where there is neither, random)"""
    paths: Paths = ()
    """Options, after all flags, that all games have which know them, and that visitors cannot change, e.g.
    env.max_cycles=80."""
    out: Path | None = None
    """Folder to which finished games go, a file for each kind of game; `magrounding replay` shows them, and agents
    learn from them (`record --player saved:FILE`). Calls of language models go there too (calls.jsonl). (default: none,
    games are not kept)"""
    host: str = LOCAL
    """Address to listen at; other machines reach it only if this is given, e.g. 0.0.0.0."""
    port: Annotated[int, Meta(ge=0, lt=2**16)] = 8000
    """Port; 0 takes a free one."""
    name: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A name by which others call this server, e.g. games.example.org; requests to any other name are refused."""
    games: Count = 200
    """Games at once."""
    steps: Count = 500
    """Steps of a game at most."""
    study: Path | None = None
    """Study (.toml) whose participants are sent to /study; see docs/studies.md. (default: none)"""
    invitation: str = ""
    """Code of an invitation to the study, the same for all; the link is /study#CODE. (default: none, everybody may take
    part)"""
    invitations: Path | None = None
    """File of codes, one a line, each of which invites one participant to the study. (default: none)"""
    people_per_address: Count = 50
    """People who may play from one address at once; more than that behind one address are turned away."""
    trusted_proxy: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Addresses or networks of the proxy before this server, with commas between; then the header X-Forwarded-For says
    which address a visitor has."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Serve until stopped."""
    server = make_server(arguments)
    from magrounding.extensions.people.web.limits import OncePerKind

    handler = logging.StreamHandler()
    handler.addFilter(OncePerKind())
    logging.basicConfig(format="%(levelname)s: %(message)s", handlers=[handler])
    sys.setswitchinterval(_SWITCH_SECONDS)
    with using(ThreadPlan()):
        asyncio.run(listen(server, arguments))


def make_server(arguments: Arguments) -> Server:
    """Make the server; ConfigurationError for a world, player or option that there is not, MissingExtra for aiohttp."""
    with needed("playing in a browser", "web"):
        from magrounding.extensions.people.web.server import Server
    from magrounding.extensions.people.web.addresses import Proxies
    from magrounding.extensions.people.web.host import Host, Keeper
    from magrounding.extensions.people.web.limits import Limits
    from magrounding.extensions.people.web.offers import Offers

    envs = tuple(env_entry(env).id for env in arguments.env) or tuple(ENVS)
    players = parse_players(arguments.player, arguments.language_models())
    if arguments.out is not None:
        keep_calls(players.values(), arguments.out / CALLS_FILE, resume=False)
    offers = Offers(
        envs,
        replace(Limits(), games=arguments.games, steps=arguments.steps, address_people=arguments.people_per_address),
        players,
        parse_fixed(arguments.paths, envs),
        arguments.standin,
    )
    known = {name for env in envs for name in offers.players(env)} - {HUMAN}
    if arguments.standin:
        check_choice("player to stand in", arguments.standin, sorted(known))
    names = [*arguments.name, arguments.host]
    proxies = Proxies(address for text in arguments.trusted_proxy for address in items(text))
    return Server(Host(offers, Keeper(arguments.out), make_participants(arguments, offers)), names, proxies)


def make_participants(arguments: Arguments, offers: Offers) -> Participants | None:
    """Make the participants of the study, None without one; ConfigurationError for options that do not fit together."""
    from magrounding.extensions.people.web.participants import Participants
    from magrounding.extensions.people.web.study import Invitations, Study

    code, codes = arguments.invitation, arguments.invitations
    if (code or codes) and (arguments.study is None or (code and codes)):
        raise ConfigurationError("a --study takes one of --invitation and --invitations")
    if arguments.study is None:
        return None
    study = Study.read(arguments.study, offers)
    if arguments.out is None:
        raise ConfigurationError("a study keeps its data: name a folder for them with --out")
    invitations = Invitations.of([code], personal=False) if code else Invitations.read(codes) if codes else None
    return Participants(study, arguments.out, invitations)


async def listen(server: Server, arguments: Arguments) -> None:
    """Listen until the process is asked to end."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, and threads, which get no signals
        loop.add_signal_handler(signal.SIGTERM, stop.set)
    async with server.listening(arguments.host, arguments.port) as (_, port):
        if arguments.host != LOCAL:
            print(
                f"warning: listening at {arguments.host}, where others reach it: who has the link of a game can "
                "join it, and nothing is encrypted; put a proxy with TLS before it",
                file=sys.stderr,
            )
        where = "" if arguments.study is None else f"study#{arguments.invitation}".rstrip("#")
        print(f"http://{LOCAL if arguments.host == '0.0.0.0' else arguments.host}:{port}/{where}", flush=True)
        await stop.wait()


def parse_players(texts: Sequence[str], models: AskedPlayers | None) -> dict[str, PlayerSpec]:
    """Return name → player of every NAME=PLAYER, language models those of `models`; or ConfigurationError."""
    players = {}
    for text in texts:
        name, _, player = text.partition("=")
        proper = name.replace("-", "").replace("_", "").isalnum() and player not in ("", HUMAN)
        if not proper or name in players:
            raise ConfigurationError(
                f"--player takes NAME=PLAYER, each name once, such as mine=run:DIR or its=pretrained:NAME, got {text!r}"
            )
        players[name] = PlayerSpec.parse(player, models)
    return players


def parse_fixed(words: Sequence[str], envs: Sequence[str]) -> dict[str, Any]:
    """Return option → value of the host; ConfigurationError for one that no env has, or a value that cannot be."""
    known = {f"env.{name}": option for env in envs for name, option in env_entry(env).schema.items()}
    asked = {whole.replace(ENV, "env."): value for whole, (_, value) in assignments(words).items()}
    return {
        path.removeprefix("env."): known[check_choice("option of these games", path, known)].parse(value)
        for path, value in asked.items()
    }
