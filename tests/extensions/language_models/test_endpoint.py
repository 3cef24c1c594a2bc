"""Calls of an endpoint: each way to fail, and the key."""

import pytest

from magrounding.extensions.language_models.endpoint import (
    CONNECTION,
    GARBAGE,
    TIMEOUT,
    Endpoint,
    EndpointFailed,
    Tokens,
)
from tests.extensions.language_models.served import Served, completion, model, serving

pytest.importorskip("httpx2")
web = pytest.importorskip("aiohttp.web")

ASK = [{"role": "user", "content": "?"}]
KEY = "sk-0123456789abcdef"
KINDS = {
    "stall": TIMEOUT,
    "break": CONNECTION,
    "cut": CONNECTION,
    "garbage": GARBAGE,
    "odd": GARBAGE,
    "429": "429",
    "500": "500",
}


@pytest.fixture
def ends(monkeypatch):
    """Endpoints that are closed, and do not wait between tries."""
    made, waits = [], []
    monkeypatch.setattr("time.sleep", waits.append)

    def make(served, **options):
        made.append(Endpoint(model(served, **options)))
        return made[-1], waits

    yield make
    for each in made:
        each.close()


def test_a_reply(ends):
    with serving(Served(lambda body: "<move>up</move>")) as served:
        end, _ = ends(served, temperature=0.5, max_tokens=7, body={"top_p": 0.9})
        found = end.complete(ASK)
        assert (found.text, found.finish, found.tokens) == ("<move>up</move>", "stop", Tokens(100, 40, 7, 2))
        assert (found.tries, found.faults) == (1, {})
        asked = {"model": "tiny", "messages": ASK, "temperature": 0.5, "max_tokens": 7, "top_p": 0.9}
        assert served.asked == [asked]
        assert "Authorization" not in served.headers[0]
        json_end, _ = ends(served, reply="json")
        json_end.complete(ASK)
        assert served.asked[1]["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("fault", KINDS)
def test_a_fault_is_tried_again(ends, fault):
    replies = iter([f"fault:{fault}", "yes"])
    with serving(Served(lambda body: next(replies))) as served:
        end, waits = ends(served, wait=4.0, timeout=0.5 if KINDS[fault] == "timeout" else 30.0)
        found = end.complete(ASK)
    assert (found.text, found.tries, found.faults) == ("yes", 2, {KINDS[fault]: 1})
    assert len(waits) == 1
    assert 3.0 <= waits[0] <= 5.0


@pytest.mark.parametrize("fault", ["stall", "500"])
def test_the_last_try_fails(ends, fault):
    with serving(Served(lambda body: f"fault:{fault}")) as served:
        end, _ = ends(served, retries=1, timeout=0.2 if KINDS[fault] == "timeout" else 20.0)
        with pytest.raises(EndpointFailed) as raised:
            end.complete(ASK)
    assert (raised.value.tries, raised.value.faults) == (2, {KINDS[fault]: 2})
    assert served.faults == {fault: 2}


def test_waits_grow_and_a_server_may_ask_for_more(ends):
    async def later(wait):
        return web.json_response({}, status=429, headers={"Retry-After": wait})

    dates = [later(wait) for wait in ("30", "Fri, 31 Dec 2100 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:59 GMT", "soon")]
    replies = iter(["fault:500"] * 3 + dates + ["yes"])
    with serving(Served(lambda body: next(replies))) as served:
        end, waits = ends(served, wait=3.0, retries=7, timeout=20.0)
        assert end.complete(ASK).tries == 8
    assert [round(wait / 3) for wait in waits[:2]] == [1, 2]
    assert waits[2] <= 10  # 8 s at most, a quarter more or less
    assert waits[3:5] == [20.0, 20.0]  # no longer than a reply may take
    assert max(waits[5:]) <= 10


async def refuse(served):
    return web.json_response({"error": "who are you?\x1b[2J"}, status=401)


async def without_end(served):
    response = web.StreamResponse()
    await response.prepare(served.request)
    while True:
        await response.write(b"x" * 2**16)


async def elsewhere(served):
    return web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"})


@pytest.mark.parametrize(("answer", "options"), [(refuse, {}), (without_end, {"retries": 0}), (elsewhere, {})])
def test_what_is_final_is_not_tried_again(ends, answer, options):
    with serving(Served(lambda body: answer(served))) as served:
        end, waits = ends(served, **options)
        with pytest.raises(EndpointFailed):
            end.complete(ASK)
    assert waits == []


def test_the_key_goes_to_the_endpoint_alone(ends, monkeypatch, caplog):
    monkeypatch.setenv("TINY_KEY", KEY)
    caplog.set_level("DEBUG")
    replies = iter([f"I know {KEY}!", "fault:401"])
    with serving(Served(lambda body: next(replies))) as served:
        end, _ = ends(served, api_key_env="TINY_KEY")
        assert end.complete(ASK).text == "I know [key]!"
        with pytest.raises(EndpointFailed) as raised:
            end.complete(ASK)
    assert served.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in f"{raised.value!r} {caplog.text} {end.complete!r} {raised.getrepr(showlocals=False)}"


@pytest.mark.parametrize(
    ("content", "text", "tokens"),
    [
        ({"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}, "", Tokens()),
        ({"choices": [{"message": {"content": [{"type": "text", "text": "a"}]}}], "usage": 3}, "a", Tokens()),
        ({**completion("x"), "usage": {"prompt_tokens": -1, "completion_tokens": "9"}}, "x", Tokens()),
        ({**completion("x"), "usage": {"prompt_tokens": 5, "prompt_tokens_details": None}}, "x", Tokens(5)),
        (completion("\ud800"), "?", Tokens(100, 40, 7, 2)),
    ],
)
def test_odd_replies(ends, content, text, tokens):
    async def answer():
        return web.json_response(content)

    with serving(Served(lambda body: answer())) as served:
        end, _ = ends(served)
        found = end.complete(ASK)
    assert (found.text, found.tokens) == (text, tokens)
