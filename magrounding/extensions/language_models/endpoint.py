"""Endpoint: one question to a server of the OpenAI form (`/chat/completions`), tried again where it fails.

No key is in any text that leaves this module: what a server writes is searched for it.
"""

from __future__ import annotations

import random
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from magrounding.errors import ConfigurationError, needed
from magrounding.extensions.language_models.models import LIMIT, NAMED, NEW_LIMIT, SYSTEM, LanguageModel
from magrounding.extensions.language_models.prompts import JSON, answer_of, kept, was_cut
from magrounding.storage import json_text, parse_json
from magrounding.teams.actor import NoReply

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
Message = Mapping[str, str]
"""A message of a chat: `role` and `content`."""

TIMEOUT, CONNECTION, GARBAGE = "timeout", "connection", "garbage"
THOUGHTS, WINDOW, FORM = "thoughts", "window", "form"
"""Kinds of faults, beside the status of a reply that is none: no reply in time; no connection, or one that broke off;
a reply that is no chat completion; one that is all thoughts; a request longer than the model's window; and one whose
form was refused. After the last two another request is sent, which is no retry."""
_LONGEST_WAIT = 8.0
_LEAST, _A_TOKEN, _MOST = 2**16, 2**8, 2**21
"""Bytes of a reply: of one without tokens, of each token, and at most."""
_LONGEST_REASON, _READ = 200, 2**13
"""Letters of an error, as it is shown, and of those in which its meaning is looked for."""
_ABOUT_THE_REQUEST = (400, 404, 413, 422, 500)
"""Statuses of errors whose words may say that a request is too long, or has another form than the endpoint takes."""
_TOO_LONG = re.compile(
    "(?<!is less than the .)context.{0,9}(length|size|window|limit)|maximum (prompt|model) length|input token count|"
    "(prompt|input|request|body|entity|payload).{0,9}too (long|large)|`inputs` (tokens|must have less)|max_num_tokens|"
    "too many (input )?tokens|exceeds? (the )?max(imum)? length|token limit|range of input length"
)
_NO_SYSTEM = re.compile(
    r"system\W{1,3}(role|message|prompt|instruction).{0,20}(not|n't|unsupp)|not (supp|allow).{0,20}system|only user|"
    r"role\W{1,3}system.{0,20}not|(invalid|unknown|unexpected) role.{0,9}system|roles must alternate|"
    "developer instruction|should be 'user' or 'assistant'|first message.{0,9} be.{0,9}user"
)
_REFUSED = (
    "(unsupported|not (support|allow|permit|available)|unrecognized|unknown|unexpected|deprecated|only |incompatible|"
    "cannot be used|must be 1\\b|must be .?(json_schema|text)\\b|no longer available|no endpoints found)"
)
_CALLED = {"response_format": r"(response_format|json.?(output|mode|object))"}
_VALUE = re.compile("too (large|high|big)|at most|less than|exceed|between|range|must be|maximum|[_ ]value|[<≤>]")
"""Words, in lower case, by which endpoints refuse a request for its length, a message of the system, or a field that
they may call otherwise; and the words by which they refuse no field, but only its value."""
_SAYING = "error", "errors", "message", "msg", "detail", "raw", "metadata", "loc", "param", "code"
"""Entries of an error's body that say what is wrong, or where: the words before the names."""
_BROKEN = re.compile("error|filter|safety|recitation|block|abort|cancel|fail|insufficient", re.IGNORECASE)
"""Reasons why a reply ends that are not the model's."""
_AGAIN = (408, 425, 429)
_HIDDEN = "[key]"
_LATE = "no whole reply came in time"


class EndpointFailed(NoReply):
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
    """One try that failed: its kind, a few words, whether another may help, and the wait that the server asks for.

    `about` is what an error says of the request, in lower case.
    """

    def __init__(self, kind: str, words: str, *, again: bool = True, wait: float = 0.0, about: str = "") -> None:
        super().__init__(words)
        self.kind, self.words, self.again, self.wait, self.about = kind, words, again, wait, about


class _Line:
    """A client of one connection, `stream`: one client of many looks through all of them for each request.

    `heard` says whether anything was read since it was last set to False.
    """

    def __init__(self, client: httpx2.Client) -> None:
        self.client, self.stream, self.ended, self.heard = client, None, False, False

    def note(self, event: str, info: Mapping[str, Any]) -> None:
        """Take note of a new connection: httpx2 calls this before and after all that it does."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self.stream = stream = info["return_value"]
            read = stream.read

            def listen(*arguments: Any, **more: Any) -> bytes:
                if self.ended:  # what had come before the end is not worked through
                    raise OSError
                self.heard = True
                return read(*arguments, **more)

            stream.read = listen
            if self.ended:
                stream.close()

    def end(self) -> None:
        """End what is under way in another thread."""
        self.ended = True
        if self.stream is not None:
            with suppress(OSError):
                self.stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


class Endpoint:
    """The endpoint of a language model, for any number of threads.

    Args:
        model: what it serves.
        turn: is held during each try, so that no more are under way at once than it allows.

    Raises:
        MissingExtra: httpx2 is not installed.
        ConfigurationError: its key is not in the environment, or no client can be made of its address, of the proxy
            that the environment names, or of the certificates.
    """

    def __init__(self, model: LanguageModel, turn: threading.Semaphore | None = None) -> None:
        with needed("a language model as a player", "llm"):
            import httpx2
        self._http, self._model = httpx2, model
        self._turn = turn or threading.Semaphore()
        self._key = model.find_key()
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key:
            self._headers["Authorization"] = f"Bearer {self._key}"
        self._names: dict[str, str] = {**model.names}
        self._most = min(_MOST, _LEAST + _A_TOKEN * model.max_tokens)
        try:
            self._url = httpx2.URL(f"{model.base_url.rstrip('/')}/chat/completions")
            self._certificates = httpx2.create_ssl_context()
            self._idle = [self._make_line()]
        except (httpx2.InvalidURL, ImportError, ValueError, OSError) as error:
            raise ConfigurationError(
                f"no connection to {model.model} can be made ({error}): look at its base_url, and at the proxies and "
                "certificates that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR name"
            ) from None
        self._closed = False

    def complete(
        self, messages: Sequence[Message], shorter: Callable[[], Sequence[Message] | None] = lambda: None
    ) -> Completion:
        """Return the reply to a chat; EndpointFailed after the last try.

        `shorter` gives what to ask instead where it is longer than the model's window: faults[WINDOW] says how often.
        """
        faults: Counter[str] = Counter()
        tried = retried = 0
        names = self._names
        while True:
            tried += 1
            try:
                with self._turn:
                    data = self._try(json_text(self._request(messages, names)).encode())
                self._names = {**self._names, **names}  # a form is remembered that was taken
                return self._completion(data, tried, faults)
            except _Fault as fault:
                form = self._other_form(fault.about, names)
                kind = WINDOW if _TOO_LONG.search(fault.about) else FORM if form else fault.kind
                faults[kind] += 1
                if kind == WINDOW and (shortened := shorter()):
                    messages = shortened
                    continue
                if kind == FORM and faults[FORM] <= 2 * len(NAMED):  # each has two other forms at most
                    names = {**names, **form}
                    continue
                if not fault.again or kind == WINDOW or retried == self._model.retries:
                    times = "once" if tried == 1 else f"{tried} times"
                    why = "a step alone is longer than the model's window: " * (kind == WINDOW) + fault.words
                    sentence = f"the endpoint of {self._model.model} was asked {times} in vain: {why}"
                    raise EndpointFailed(self._plain(sentence), tried, faults) from None
                wait = min(_LONGEST_WAIT, self._model.wait * 2.0**retried) * random.uniform(0.75, 1.25)
                retried += 1
                time.sleep(max(wait, min(fault.wait, self._model.timeout)))

    def close(self) -> None:
        """Close all connections; those of calls under way as soon as these end."""
        self._closed = True
        with suppress(IndexError):  # another thread may take the last
            while True:
                self._idle.pop().client.close()

    def _make_line(self) -> _Line:
        return _Line(self._http.Client(headers=self._headers, verify=self._certificates, follow_redirects=False))

    def _request(self, messages: Sequence[Message], names: Mapping[str, str]) -> dict[str, Any]:
        model = self._model
        how: dict[str, Any] = {"temperature": model.temperature, LIMIT: model.max_tokens}
        how |= {"response_format": {"type": "json_object"}} if model.reply == JSON else {}
        sent = {name: value for field, value in how.items() if (name := names.get(field, field))}
        return {"model": model.model, "messages": _with_role(messages, names.get(SYSTEM, SYSTEM)), **sent, **model.body}

    def _try(self, payload: bytes) -> bytes:
        """Send a question and return the body of its answer, or raise a _Fault.

        It is sent in a thread of its own, which is left behind at the deadline: timeouts of sockets are of each part
        that is received, and looking up a name has none.
        """
        try:
            line = self._idle.pop()
        except IndexError:
            line = self._make_line()
        answer = in_thread(lambda: self._send(line, payload))
        try:
            return answer.result(self._model.timeout)
        except TimeoutError:
            raise _Fault(TIMEOUT, _LATE) from None
        finally:
            if answer.done():
                self._idle.append(line)
                if self._closed:
                    self.close()
            else:
                line.end()
                answer.add_done_callback(lambda _: line.client.close())

    def _send(self, line: _Line, payload: bytes) -> bytes:
        """Likewise, without a deadline of the whole."""
        http, how = self._http, {"timeout": self._model.timeout, "extensions": {"trace": line.note}}
        while True:
            old, status, data = line.stream, 0, bytearray()
            line.heard = False
            try:
                with line.client.stream("POST", self._url, content=payload, **how) as response:
                    if not line.heard:
                        raise OSError  # a second answer to the question before: this one is asked anew
                    status = response.status_code
                    for part in response.iter_raw():
                        data += part
                        if len(data) > self._most:
                            raise _Fault(GARBAGE, f"its reply has more than {self._most:,} bytes")
                break
            except (http.HTTPError, http.InvalidURL, http.StreamError, OSError, ValueError) as error:
                late, broke = isinstance(error, http.TimeoutException), isinstance(error, http.ProtocolError)
                if old is not None and line.stream is old and not (late or status or line.ended):
                    line.stream = None  # the server had closed it while it was idle: a new one, once
                    continue
                words = _LATE if late else "the connection broke off" if broke else "there is no connection"
                raise _Fault(TIMEOUT if late else CONNECTION, words) from None
        if status != 200:
            texts = _said(bytes(data))
            about = " ".join(texts).lower() if status in _ABOUT_THE_REQUEST else ""
            words, wait = ": ".join([f"status {status}", *texts[:1]]), _seconds(response.headers.get("Retry-After", ""))
            again = status in _AGAIN or status >= 500
            raise _Fault(str(status), words, again=again, wait=wait, about=" ".join(about[:_READ].split()))
        return bytes(data)

    def _other_form(self, about: str, names: Mapping[str, str]) -> dict[str, str]:
        """Return the names that an error asks for instead of those of a request; {} for another error."""
        if names.get(SYSTEM, SYSTEM) and _NO_SYSTEM.search(about):
            return {SYSTEM: ""}
        for ours in NAMED[:-1]:
            name = names.get(ours, ours)
            called = _CALLED.get(name, rf"\b{name}\b")
            if not name or not re.search(f"{called}.{{0,80}}{_REFUSED}|{_REFUSED}.{{0,80}}{called}", about):
                continue
            if ours != LIMIT:
                return {ours: ""}
            if not _VALUE.search(about):  # it has two names, and is left out where both are refused
                both = name != self._model.names.get(LIMIT, LIMIT)
                return {LIMIT: "" if both else NEW_LIMIT if name == LIMIT else LIMIT}
        return {}

    def _completion(self, data: bytes, tries: int, faults: Mapping[str, int]) -> Completion:
        try:
            content = parse_json(data)
            choice = content["choices"][0]
            text = choice["message"].get("content") or ""
            if isinstance(text, list):  # parts of a message, as some servers send them
                text = "".join(part["text"] for part in text if "text" in part.get("type", "text"))
            finish, text = self._plain(str(choice.get("finish_reason") or "")), kept(self._hide(text))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            raise _Fault(GARBAGE, "its reply is no chat completion") from None
        if _BROKEN.search(finish):
            raise _Fault(GARBAGE, f"its reply was not ended by the model, but by {finish!r}")
        if was_cut(finish) and not answer_of(text).strip():
            raise _Fault(THOUGHTS, f"all its tokens were spent on thoughts: raise {LIMIT} = {self._model.max_tokens}")
        return Completion(text, finish, _tokens(content.get("usage")), tries, dict(faults))

    def _hide(self, text: str) -> str:
        """Return a text of the server's without the key, and without what no file in UTF-8 can hold."""
        text = text.encode("utf-8", "replace").decode()
        return text.replace(self._key, _HIDDEN) if self._key else text

    def _plain(self, text: str) -> str:
        """Return a text of the server's as a short line without control characters."""
        line = " ".join("".join(each if each.isprintable() else " " for each in self._hide(text)[:_READ]).split())
        return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}…"


def in_thread(function: Callable[[], T]) -> Future[T]:
    """Call a function in a thread that does not keep the process from ending."""
    found: Future[T] = Future()

    def call() -> None:
        try:
            found.set_result(function())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return found


def _with_role(messages: Sequence[Message], role: str) -> list[Message]:
    """Return messages whose instructions have another role; "" puts them into the first message of the user."""
    first, *others = messages
    if first["role"] != SYSTEM:
        return list(messages)
    if role:
        return [{**first, "role": role}, *others]
    return [{**others[0], "content": f"{first['content']}\n\n{others[0]['content']}"}, *others[1:]]


def _said(data: bytes) -> list[str]:
    """Return the texts in the body of an error, whatever its form: JSON, plain text or a page."""

    def texts(content: Any) -> list[str]:
        if isinstance(content, dict):
            content = [content[name] for name in _SAYING if name in content]
        if isinstance(content, list):
            return [text for each in content for text in texts(each)]
        return [content] if isinstance(content, str) else []

    with suppress(ValueError):
        return texts(parse_json(data))
    page = re.sub("<[^<>]*>", " ", data[:_READ].decode("utf-8", "replace"))
    return [page.strip()] if page.strip() else []


def _seconds(wait: str) -> float:
    """Return the seconds that a Retry-After asks for, as a number or as a date; 0 for anything else."""
    with suppress(ValueError, OverflowError):
        return float(wait) if wait.isdecimal() else parsedate_to_datetime(wait).timestamp() - time.time()
    return 0.0


def _tokens(usage: Any) -> Tokens:
    def count(*path: str) -> int:
        value = usage
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0

    read, written = count("prompt_tokens"), count("completion_tokens")
    cached = min(read, count("prompt_tokens_details", "cached_tokens"))
    return Tokens(read, cached, written, count("completion_tokens_details", "reasoning_tokens"))
