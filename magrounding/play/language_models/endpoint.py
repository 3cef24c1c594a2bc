"""Endpoint: one question to a server of the OpenAI form (`/chat/completions`), tried again where it fails.

No key is in any text that leaves this module: what a server writes is searched for it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from magrounding.errors import MagroundingError, needed
from magrounding.play.language_models.models import LanguageModel
from magrounding.play.language_models.prompts import JSON
from magrounding.storage import json_text, parse_json

if TYPE_CHECKING:
    import httpx2

Message = Mapping[str, str]
"""A message of a chat: `role` and `content`."""

TIMEOUT, CONNECTION, GARBAGE = "timeout", "connection", "garbage"
"""Kinds of faults, beside the status of a reply that is none: no reply in time; no connection, or one that broke off;
a reply that is no chat completion."""
_LONGEST_WAIT = 8.0
_MOST = 2**22
"""Bytes of a reply."""
_LONGEST_REASON = 200
_AGAIN = (408, 425, 429)
_HIDDEN = "[key]"


class EndpointFailed(MagroundingError):
    """A call whose tries all failed; the sentence says how the last one did.

    Attributes:
        tries: how many there were.
        faults: kind → how often.
    """

    def __init__(self, message: str, tries: int = 0, faults: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.tries, self.faults = tries, dict(faults or {})


class Tokens(NamedTuple):
    """Tokens of a call as the endpoint counts them; 0 where it does not.

    Attributes:
        read, written: of the question and the reply.
        cached: those of `read` that the endpoint had computed before.
        reasoning: those of `written` that no reply shows.
    """

    read: int = 0
    cached: int = 0
    written: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Completion:
    """A reply.

    Attributes:
        text: of the message, "" for one without.
        finish: the endpoint's reason why it ends there: "stop", "length", …
        tokens: of the question and the reply.
        tries, faults: how often it was asked for, and kind → number of the faults before.
    """

    text: str
    finish: str
    tokens: Tokens
    tries: int = 1
    faults: Mapping[str, int] = field(default_factory=dict)


class _Fault(Exception):
    """One try that failed: its kind, a few words, whether another may help, and the wait that the server asks for."""

    def __init__(self, kind: str, words: str, *, again: bool = True, wait: float = 0.0) -> None:
        super().__init__(words)
        self.kind, self.words, self.again, self.wait = kind, words, again, wait


class Endpoint:
    """The endpoint of a language model, for any number of threads.

    Args:
        model: what it serves.
        turn: is held during each try, so that no more are under way at once than it allows.
        sleep: waits between tries.

    Raises:
        MissingExtra: httpx2 is not installed.
        ConfigurationError: its key is not in the environment.
    """

    def __init__(
        self,
        model: LanguageModel,
        turn: threading.Semaphore | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        with needed("a language model as a player", "llm"):
            import httpx2
        self._http, self._model, self._sleep = httpx2, model, sleep
        self._turn = turn or threading.Semaphore()
        self._key = model.find_key()
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key:
            self._headers["Authorization"] = f"Bearer {self._key}"
        self._url = httpx2.URL(f"{model.base_url.rstrip('/')}/chat/completions")
        self._certificates = httpx2.create_ssl_context()
        self._idle: list[httpx2.Client] = []
        self._closed = False

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the reply to a chat; EndpointFailed after the last try."""
        payload = json_text(self._request(messages)).encode()
        faults: Counter[str] = Counter()
        for tried in range(1, self._model.retries + 2):
            try:
                with self._turn:
                    content = self._try(payload)
                return self._completion(content, tried, faults)
            except _Fault as fault:
                faults[fault.kind] += 1
                if not fault.again or tried > self._model.retries:
                    times = "once" if tried == 1 else f"{tried} times"
                    sentence = f"the endpoint of {self._model.model} was asked {times} in vain: {fault.words}"
                    raise EndpointFailed(self._plain(sentence), tried, faults) from None
                wait = min(_LONGEST_WAIT, self._model.wait * 2 ** (tried - 1)) * random.uniform(0.75, 1.25)
                self._sleep(max(wait, min(fault.wait, self._model.timeout)))
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Close all connections; those of calls under way as soon as these end."""
        self._closed = True
        with suppress(IndexError):  # another thread may take the last
            while True:
                self._idle.pop().close()

    @contextmanager
    def _client(self) -> Iterator[httpx2.Client]:
        """Lend a client of one connection: one client of many looks through all of them for each request."""
        try:
            client = self._idle.pop()
        except IndexError:
            client = self._http.Client(headers=self._headers, verify=self._certificates, follow_redirects=False)
        try:
            yield client
        finally:
            self._idle.append(client)
            if self._closed:
                self.close()

    def _request(self, messages: Sequence[Message]) -> dict[str, Any]:
        model = self._model
        form = {"response_format": {"type": "json_object"}} if model.reply == JSON else {}
        how = {"temperature": model.temperature, "max_tokens": model.max_tokens}
        return {"model": model.model, "messages": list(messages), **how, **form, **model.body}

    def _try(self, payload: bytes) -> Any:
        """Send a question and return the JSON of its answer, or raise a _Fault."""
        seconds, http = self._model.timeout, self._http
        end, data = time.monotonic() + seconds, bytearray()
        late = _Fault(TIMEOUT, f"no whole reply came in {seconds:g} s")
        try:
            with (
                self._client() as client,
                client.stream("POST", self._url, content=payload, timeout=seconds) as response,
            ):
                for part in response.iter_raw():
                    data += part
                    if time.monotonic() > end:  # a server that sends a byte now and then
                        raise late
                    if len(data) > _MOST:
                        raise _Fault(GARBAGE, f"its reply has more than {_MOST:,} bytes")
        except http.TimeoutException:
            raise late from None
        except (http.HTTPError, http.InvalidURL, http.StreamError, OSError) as error:
            words = "the connection broke off" if isinstance(error, http.ProtocolError) else "there is no connection"
            raise _Fault(CONNECTION, words) from None
        if response.status_code != 200:
            raise self._refused(response.status_code, response.headers.get("Retry-After", ""), bytes(data))
        try:
            return parse_json(bytes(data))
        except ValueError:
            raise _Fault(GARBAGE, "its reply is not JSON") from None

    def _refused(self, status: int, wait: str, data: bytes) -> _Fault:
        words = ""
        with suppress(ValueError, LookupError, TypeError):
            error = parse_json(data)["error"]
            words = str(error.get("message", "") if isinstance(error, dict) else error)
        seconds = float(wait) if wait.isdecimal() and len(wait) < 6 else 0.0
        again = status in _AGAIN or status >= 500
        return _Fault(str(status), f"status {status}{': ' if words else ''}{words}", again=again, wait=seconds)

    def _completion(self, content: Any, tries: int, faults: Mapping[str, int]) -> Completion:
        try:
            choice = content["choices"][0]
            text = choice["message"].get("content")
            if isinstance(text, list):  # parts of a message, as some servers send them
                text = "".join(part["text"] for part in text if part.get("type") == "text")
            if text is not None and not isinstance(text, str):
                raise TypeError
            finish = str(choice.get("finish_reason") or "")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise _Fault(GARBAGE, "its reply is no chat completion") from None
        tokens = _tokens(content.get("usage"))
        return Completion(self._hide(text or ""), self._plain(finish), tokens, tries, dict(faults))

    def _hide(self, text: str) -> str:
        """Return a text of the server's without the key, and without what no file in UTF-8 can hold."""
        text = text.encode("utf-8", "replace").decode()
        return text.replace(self._key, _HIDDEN) if self._key else text

    def _plain(self, text: str) -> str:
        """Return a text of the server's as a short line without control characters."""
        line = " ".join("".join(each if each.isprintable() else " " for each in self._hide(text)).split())
        return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}…"


def _tokens(usage: Any) -> Tokens:
    def count(*path: str) -> int:
        value = usage
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0

    read, written = count("prompt_tokens"), count("completion_tokens")
    cached = min(read, count("prompt_tokens_details", "cached_tokens"))
    return Tokens(read, cached, written, count("completion_tokens_details", "reasoning_tokens"))
