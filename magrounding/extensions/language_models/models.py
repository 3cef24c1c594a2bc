"""LanguageModel: the options of a model behind an endpoint of the OpenAI form, and the file that names several."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from magrounding.errors import ConfigurationError
from magrounding.extensions.language_models.prompts import REPLIES, Prompt
from magrounding.schema import Count, Natural, NonNegative, OneOf, Options, load
from magrounding.storage import NOTE, digest, json_text, parse_toml, require_bytes, text_of, user_path

_OURS = ("messages", "model", "stream", "temperature", "max_tokens", "response_format", "n")
"""Entries of a request that have options of their own, or that replies are read by."""
LIMIT, NEW_LIMIT, SYSTEM = "max_tokens", "max_completion_tokens", "system"
NAMED = LIMIT, "temperature", "response_format", SYSTEM
"""Fields of a request, and a role, that have other names at some endpoints."""
_A_DAY = 86400
_HOST = re.compile(r"(?=.{1,253}$)(?:[\w-]{1,63}\.)*(?!\d+\.?$)[\w-]{1,63}\.?|\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)
"""Name of a machine, whose last part is no number, or its numbers; those of IPv6 are checked by `urlsplit`."""
_ADDRESS = re.compile(r'[!"$->@-~]{1,2000}')
"""Printable letters without spaces, "?" and "#"."""
_VARIABLE = re.compile(r"([A-Z][A-Z0-9_]*)?")
_MILLION = 1_000_000
_Name = Annotated[str, Meta(pattern=r"^\w{0,64}$")]


@dataclass(frozen=True)
class LanguageModel(Options):
    """A language model, the endpoint that serves it, and how it is asked.

    Attributes:
        model: its name at the endpoint.
        base_url: of the endpoint, to which `/chat/completions` is added, e.g. http://127.0.0.1:8080/v1.
        api_key_env: environment variable that holds the key; a key itself stands in no file. None is sent without it.
        temperature: of sampling; `--play` does not change it.
        max_tokens: of a reply.
        timeout: seconds that a reply may take, from the first byte that is sent to the last that is received.
        retries: further tries of a call that failed (no connection, no reply in time, garbage, status 408, 429 or 5xx).
        wait: seconds before the first of them, twice as many before each further one, 8 at most; an endpoint may ask
            for more (Retry-After), up to `timeout`.
        history: steps before this one that the model reads again, with its replies, at least (`Dialogue`); the manual
            stands there once.
        prompt: `naive`, `chain_of_thought` or `few_games` (two games of the oracle on the training split come first),
            or a file of one's own (.txt).
        reply: form of the move in a reply: `marks` (between <move> and </move>) or `json` (an object, which the
            endpoint is asked for).
        price: of a million tokens, by kind: in, cached (those of `in` that the endpoint had computed before), out.
        body: more entries of each request, e.g. top_p or reasoning_effort.
        names: names at the endpoint of max_tokens, temperature, response_format and of the role `system`, where it has
            others: { max_tokens = "max_completion_tokens", system = "developer" }. "" leaves a field out, and puts the
            instructions into the first message of the user. Forms that an endpoint asks for are learnt without it.
    """

    model: str
    base_url: str
    api_key_env: str = ""
    temperature: NonNegative = 0.0
    max_tokens: Count = 512
    timeout: Annotated[float, Meta(gt=0, le=_A_DAY)] = 30.0
    retries: Annotated[int, Meta(ge=0, le=1000)] = 2
    wait: NonNegative = 0.5
    history: Natural = 4
    prompt: str = "naive"
    reply: Annotated[str, OneOf(REPLIES, "form of a reply")] = "marks"
    price: Mapping[Literal["in", "cached", "out"], NonNegative] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[Literal["max_tokens", "temperature", "response_format", "system"], _Name] = field(
        default_factory=dict
    )

    @classmethod
    def owner(cls) -> str:
        return "a language model"

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            parts = urlsplit(self.base_url)
            proper = parts.scheme in ("http", "https") and bool(parts.hostname)
            proper = proper and parts.username is None and parts.port != 0 and bool(_ADDRESS.fullmatch(self.base_url))
            proper = proper and (":" in (parts.hostname or "") or bool(_HOST.fullmatch(parts.hostname or "")))
        except ValueError:
            proper = False
        if not self.model or not proper:  # neither the address nor what may be a key is repeated
            raise ConfigurationError(
                "a language model has a name, and a base_url such as http://127.0.0.1:8080/v1: without a user, a "
                "password or a query, as keys stand in the environment only (api_key_env)"
            )
        if not _VARIABLE.fullmatch(self.api_key_env):
            raise ConfigurationError(
                "api_key_env is the name of an environment variable, in capital letters, such as OPENAI_API_KEY"
            )
        if ours := {*self.body} & {*_OURS}:
            raise ConfigurationError(f"body has entries that are options of their own: {', '.join(sorted(ours))}")
        try:
            json_text(self.body)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"body holds only what JSON can say: {error}") from None

    @property
    def settings_hash(self) -> str:
        """The beginning of a SHA-256 of all that replies depend on; where the model is served does not count."""
        names = "model", "temperature", "max_tokens", "history", "reply", "body"
        more = {"names": self.names} if self.names else {}
        settings = {name: getattr(self, name) for name in names} | {"prompt": Prompt.load(self.prompt).hash} | more
        return digest(settings)[:16]

    def cost(self, read: int, cached: int, written: int) -> float | None:
        """Return the price of a call by its tokens; None where the file names no price."""
        if not self.price:
            return None
        of = {"out": 0.0, "in": 0.0, **self.price}
        return ((read - cached) * of["in"] + cached * of.get("cached", of["in"]) + written * of["out"]) / _MILLION

    def find_key(self) -> str:
        """Return the key from the environment, "" for a model without one; ConfigurationError where it is not set."""
        if not self.api_key_env:
            return ""
        key = os.environ.get(self.api_key_env, "").strip()
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigurationError(f"{self.api_key_env}, which has to hold the key of {self.model}, is not set")
        return key


def read_models(path: str | Path) -> dict[str, LanguageModel]:
    """Read a TOML file of tables, name → options of a model; ConfigurationError where it makes none."""
    data = require_bytes(user_path(path), NOTE, refused=ConfigurationError)
    try:
        content = parse_toml(text_of(data))
    except ValueError as error:
        raise ConfigurationError(f"the language models in {path} cannot be read, it is no TOML: {error}") from None
    if not content or not all(re.fullmatch(r"[\w.-]+", name) for name in content):
        raise ConfigurationError(
            f"{path} has a table [NAME] with model and base_url for each language model, a name without spaces"
        )
    models = {}
    for name, table in content.items():
        try:
            models[name] = load(LanguageModel, table)
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}, table {name}: {error}") from None
    return models
