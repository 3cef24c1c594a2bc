"""A server of the OpenAI form on loopback, in a thread, with replies of a test's, and counts what it was asked."""

import asyncio
import json
import re
import threading
from collections import Counter
from contextlib import contextmanager

from aiohttp import web

from magrounding.extensions.language_models.models import LanguageModel

FAULTS = "stall", "break", "cut", "garbage", "odd", "429", "500"


def last_legal(body):
    """The last legal move of the last message, between marks."""
    moves = re.findall(r"MOVES\n(.*?)(?:\n\n|$)", body["messages"][-1]["content"], re.DOTALL)
    last = moves[-1].splitlines()[-1] if moves else "stay"
    return f"<move>{last if last.startswith('tell ') else last.split(', ')[-1]}</move>"


def completion(text, read=100, cached=40, written=7):
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    usage["prompt_tokens_details"] = {"cached_tokens": cached}
    usage["completion_tokens_details"] = {"reasoning_tokens": 2}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    about = {"id": "reply", "object": "chat.completion", "created": 0, "model": "tiny"}
    return {**about, "choices": [choice], "usage": usage}


class Served:
    """What the server was asked.

    Attributes:
        reply: body of a request → text of the reply, or a fault of FAULTS behind "fault:".
        asked: bodies in order; headers likewise.
        request: the last one.
        answered: bodies that got a whole reply.
        faults: fault → how often.
    """

    def __init__(self, reply=last_legal):
        self.reply, self.url = reply, ""
        self.asked, self.headers, self.answered, self.faults = [], [], [], Counter()
        self.request = None

    async def pause(self):
        await asyncio.sleep(0.02)

    async def handle(self, request):
        body = await request.json()
        self.request = request
        self.asked.append(body)
        self.headers.append(dict(request.headers))
        text = self.reply(body)
        if not isinstance(text, str):
            return await text
        if not text.startswith("fault:"):
            self.answered.append(body)
            return web.json_response(completion(text))
        fault = text.removeprefix("fault:")
        self.faults[fault] += 1
        if fault == "stall":
            await asyncio.Event().wait()  # until the client hangs up
        if fault == "break":
            request.transport.abort()
            return web.Response()
        if fault == "cut":
            response = web.StreamResponse(headers={"Content-Length": "1000"})
            await response.prepare(request)
            await response.write(b'{"choices": [')
            request.transport.abort()
            return response
        if fault == "garbage":
            return web.Response(body=b"\xff\x00<html>")
        if fault == "odd":
            return web.json_response({"choices": [{"message": "hello"}]})
        headers = {"Retry-After": "0"} if fault == "429" else {}
        error = {"message": f"no: {request.headers.get('Authorization')}"}
        return web.json_response({"error": error}, status=int(fault), headers=headers)


@contextmanager
def serving(served):
    """Serve in a thread while entered; `served.url` is the address."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def main():
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", served.handle)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        served.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield served
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def model(served, **options):
    """A language model that the server serves; tries follow one another without a wait."""
    return LanguageModel("tiny", served.url, **{"wait": 0.0, "timeout": 30.0, **options})


def file_of(folder, served, **options):
    """A file that names one model, `small`."""
    lines = {"model": "tiny", "base_url": served.url, "wait": 0.0, "timeout": 30.0, **options}
    path = folder / "models.toml"
    path.write_text("[small]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items()))
    return path
