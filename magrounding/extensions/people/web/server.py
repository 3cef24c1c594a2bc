"""Server: pages and the websocket, by aiohttp; it checks origins, rates and sizes of requests."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from importlib import resources
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, WSMsgType, web

from magrounding.extensions.people.web.addresses import Proxies, Quota, quotas
from magrounding.extensions.people.web.gate import NAME, Gate, HttpConnection, listening
from magrounding.extensions.people.web.host import Guest, Host
from magrounding.extensions.people.web.limits import Bucket
from magrounding.extensions.people.web.messages import Refusal, parse, read, require
from magrounding.storage import json_text

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
PAGE = "index.html"
_SCRIPT = "text/javascript"
_FILES = {PAGE: "text/html", "page.css": "text/css", "page.js": _SCRIPT, "board.js": _SCRIPT, "study.js": _SCRIPT}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STATUS = {"foreign_origin": 403, "foreign_host": 403, "no_game": 404, "no_page": 404, "not_over": 409, "too_big": 413}
_STATUS |= {"too_fast": 429, "quota": 429, "slow": 408, "full": 503, "busy": 503, "lost": 500, "internal": 500}

LOG = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """The pages and the websocket of a host.

    A request to a name that is neither in `names` nor of the loopback is refused, so that no foreign page can reach the
    server by a name of its own. Requests that come through one of `proxies` count to the address that it names.
    """

    def __init__(self, host: Host, names: Iterable[str] = (), proxies: Proxies | None = None) -> None:
        self.host, self._names = host, {*LOOPBACK, *(name.lower() for name in names)}
        self._proxies, self._quota_of, self._sockets = proxies or Proxies(), quotas(host.limits), 0
        folder = resources.files("magrounding.extensions.people.web").joinpath("page")
        self._files = {name: folder.joinpath(name).read_bytes() for name in _FILES}

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=self.host.limits.upload_bytes)
        app.add_routes(
            [
                *(web.get(path, self._file) for path in ("/", "/game/{code}", "/replay", "/study", "/file/{name}")),
                web.get("/study/about", self._about),
                web.get("/offers", self._offers),
                web.get("/sprite/{key}", self._sprite),
                web.get("/game/{code}/frames", self._frames),
                web.get("/game/{code}/saved", self._saved),
                web.post("/replay", self._replay),
                web.get("/socket", self._socket),
            ]
        )
        app.on_response_prepare.append(_add_headers)
        app.cleanup_ctx.append(self._sweeping)
        return app

    def listening(self, host: str, port: int) -> AbstractAsyncContextManager[tuple[Gate, int]]:
        """Listen while entered (`gate.listening`)."""
        return listening(self.application(), self.host.limits, self._proxies, host, port)

    async def _sweeping(self, app: web.Application):
        self.host.open()
        task = asyncio.get_running_loop().create_task(self.host.sweep())
        yield
        task.cancel()
        self.host.close()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse by code."""
        _allow(request, self.host.limits.request_seconds)
        try:
            require(_name_of(request.host) in self._names, "foreign_host")
            _take(self._quota(request).requests)
            response = await handler(request)
        except Refusal as refusal:
            response = _refused(refusal)
        except web.HTTPRequestEntityTooLarge:
            response = _refused(Refusal("too_big"))
        except web.HTTPException as error:
            response = _refused(Refusal("no_page" if error.status in (404, 405) else "malformed"))
        except ConnectionError:
            raise
        except Exception:
            LOG.exception("a request failed")
            response = _refused(Refusal("internal"))
        _allow(request, self.host.limits.quiet_seconds)
        return response

    def _quota(self, request: web.Request) -> Quota:
        forwarded = request.headers.getall("X-Forwarded-For", [])
        return self._quota_of(self._proxies.visitor(request.remote or "", forwarded))

    def _check_origin(self, request: web.Request) -> None:
        """Raise Refusal unless a page of this very server asks."""
        try:
            parts = urlsplit(request.headers.get("Origin", ""))
            same = parts.scheme in ("http", "https") and parts.netloc.lower() == request.host.lower()
        except ValueError:
            same = False
        require(same, "foreign_origin")

    async def _file(self, request: web.Request) -> web.Response:
        """One of the page's files, which were all read at the start; the page itself where none is named."""
        name = request.match_info.get("name", PAGE)
        require(name in self._files, "no_page")
        return web.Response(body=self._files[name], content_type=_FILES[name], charset="utf-8")

    async def _offers(self, request: web.Request) -> web.Response:
        return web.json_response(text=self.host.offered())

    async def _about(self, request: web.Request) -> web.Response:
        if self.host.participants is None:
            raise Refusal("no_page")
        return web.json_response(self.host.participants.study.about())

    async def _sprite(self, request: web.Request) -> web.Response:
        png = self.host.sprites.png(request.match_info["key"])
        if png is None:
            raise Refusal("no_page")
        return web.Response(body=png, content_type="image/png", headers={"Cache-Control": "max-age=86400, immutable"})

    async def _frames(self, request: web.Request) -> web.Response:
        _take(self._quota(request).heavy)
        return web.json_response(text=await self.host.room(request.match_info["code"]).history())

    async def _saved(self, request: web.Request) -> web.Response:
        room = self.host.room(request.match_info["code"])
        name = f"{room.plan.env}-seed{room.session.seed}.jsonl"
        shown = {"Content-Disposition": f'attachment; filename="{name}"'}
        return web.Response(text=room.saved(), content_type="application/x-ndjson", headers=shown)

    async def _replay(self, request: web.Request) -> web.Response:
        self._check_origin(request)
        _take(self._quota(request).heavy)
        number = request.query.get("game", "0")
        require(number.isascii() and number.isdigit() and len(number) <= 6, "wrong_value", "game is a number")
        try:
            async with asyncio.timeout(self.host.limits.upload_seconds):
                data = await request.read()
        except TimeoutError:
            raise Refusal("slow", "the upload takes too long") from None
        return web.json_response(text=await self.host.replay(data, int(number)))

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        self._check_origin(request)
        limits, quota = self.host.limits, self._quota(request)
        require(quota.sockets < limits.address_sockets, "quota")
        require(self._sockets < limits.sockets, "full")
        socket = web.WebSocketResponse(
            max_msg_size=limits.frame_bytes, heartbeat=limits.heartbeat, compress=False, timeout=5.0
        )
        self._sockets += 1
        quota.sockets += 1
        try:
            await socket.prepare(request)
            _allow(request, math.inf)  # its heartbeat ends it
            await _Connection(self.host, socket, quota).hold()
        finally:
            self._sockets -= 1
            quota.sockets -= 1
        return socket


class _Connection:
    """A websocket: hands the client's messages to the host, and sends answers and the news of its game."""

    def __init__(self, host: Host, socket: web.WebSocketResponse, quota: Quota) -> None:
        self._host, self._socket, limits = host, socket, host.limits
        self._queue: asyncio.Queue[str | None] = asyncio.Queue(limits.backlog)
        self._guest = Guest(quota, self._send)
        self._bucket = Bucket(limits.messages_per_second, limits.burst)
        self._strikes, self._closing = 0, False

    async def hold(self) -> None:
        """Handle messages until either side ends the connection."""
        writer = asyncio.get_running_loop().create_task(self._write())
        try:
            async for message in self._socket:
                await self._handle(message.data if message.type == WSMsgType.TEXT else None)
                if self._strikes == self._host.limits.strikes:
                    self._send(None)
        finally:
            self._host.part(self._guest, for_good=False)
            writer.cancel()
            with suppress(asyncio.CancelledError):
                await writer

    async def _handle(self, text: str | None) -> None:
        """Obey a message, or send the refusal."""
        ref = None
        try:
            _take(self._bucket)
            if text is None:
                raise Refusal("malformed")
            require(len(text.encode("utf-8", "replace")) <= self._host.limits.message_bytes, "too_big")
            content = read(text)
            ref = content.get("ref") if type(content.get("ref")) is int else None
            answer = await self._host.answer(self._guest, parse(content))
            self._strikes = 0
        except Exception as error:
            refusal = error if isinstance(error, Refusal) else Refusal("internal")
            if refusal is not error:
                LOG.exception("a message failed")
            self._strikes += 1
            answer = {"type": "refused", **_shown(refusal)}
        if answer is not None:
            self._send(json_text(answer if ref is None else {**answer, "ref": ref}))

    def _send(self, text: str | None) -> None:
        """Put a text into the queue, or None to close; who lets it fill up is let go."""
        try:
            self._queue.put_nowait(text)
        except asyncio.QueueFull:
            if self._closing:
                return
            self._closing = True
            asyncio.get_running_loop().create_task(
                self._socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"slow", drain=False)
            )

    async def _write(self) -> None:
        while True:
            text = await self._queue.get()
            try:
                if text is None:
                    await self._socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"too_fast")
                    return
                await self._socket.send_str(text)
            except (ConnectionError, RuntimeError):  # it is closing
                return


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = NAME  # aiohttp has named its version
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def _allow(request: web.Request, seconds: float) -> None:
    """Let a request's connection live for so long, if it came through a gate."""
    if isinstance(request.protocol, HttpConnection):
        request.protocol.allow(seconds)


def _take(bucket: Bucket) -> None:
    require(bucket.take(), "too_fast")


def _name_of(host: str) -> str:
    """A host without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()


def _refused(refusal: Refusal) -> web.Response:
    return web.json_response(_shown(refusal), status=_STATUS.get(refusal.code, 400))


def _shown(refusal: Refusal) -> dict[str, str]:
    return {"code": refusal.code, "sentence": str(refusal)}
