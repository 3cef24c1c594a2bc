"""Endpoints that hold a call, refuse its form or its length, or reply at any length: each scripted, byte by byte."""

import json
import socket
import threading
import time
from contextlib import contextmanager, suppress
from itertools import count

import pytest

from magrounding.cli import evaluate as evaluation
from magrounding.cli import match as command
from magrounding.cli.command import CommandLine
from magrounding.errors import ConfigurationError
from magrounding.extensions.language_models.calls import Calls
from magrounding.extensions.language_models.endpoint import (
    FORM,
    GARBAGE,
    THOUGHTS,
    TIMEOUT,
    WINDOW,
    Endpoint,
    EndpointFailed,
)
from magrounding.extensions.language_models.models import LanguageModel, read_models
from magrounding.extensions.language_models.prompts import JSON, MARKS, read_move
from tests.extensions.language_models.served import Served, completion, file_of, last_legal, model, serving
from tests.extensions.language_models.test_matches import SMALL, play

pytest.importorskip("httpx2")
web = pytest.importorskip("aiohttp.web")

ASK = [{"role": "system", "content": "Play."}, {"role": "user", "content": "?"}]
LEGAL = {"left": 3}
FOUR_MB = 4_000_000


@contextmanager
def sockets(talk):
    """A server whose connections `talk` one after another, each in a thread; yields its address."""
    server = socket.create_server(("127.0.0.1", 0))

    def each(connection):
        with suppress(OSError), connection:
            talk(connection)

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=each, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def drip(begin, again):
    def talk(connection):
        connection.recv(2**16)
        connection.sendall(begin)
        while True:
            connection.sendall(again)
            time.sleep(0.02)

    return talk


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "),
    ],
)
def test_a_call_ends_at_its_deadline(begin, again):
    """The old code went on as long as bytes came: the bound is far from both."""
    with sockets(drip(begin, again)) as url:
        end = Endpoint(LanguageModel("tiny", url, timeout=0.3, retries=1, wait=0.0))
        began = time.monotonic()
        with pytest.raises(EndpointFailed) as raised:
            end.complete(ASK)
        end.close()
    assert raised.value.faults == {TIMEOUT: 2}
    assert time.monotonic() - began < 20


def test_a_flood_that_came_before_the_deadline_is_not_worked_through_after_it():
    """A hundred thousand hints at once wait in the buffers; the old code read them all."""
    gone = threading.Event()

    def flood(connection):
        try:
            connection.recv(2**16)
            while True:
                connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000)
        finally:
            gone.set()

    with sockets(flood) as url:
        end = Endpoint(LanguageModel("tiny", url, timeout=0.3, retries=0))
        with pytest.raises(EndpointFailed):
            end.complete(ASK)
        assert gone.wait(300)
        end.close()


def test_a_second_answer_to_a_question_does_not_answer_the_next():
    numbers = map(str, count(1))

    def talk(connection):
        while data := connection.recv(2**16):
            if b"messages" not in data:
                continue
            bodies = [json.dumps(completion(next(numbers))).encode() for _ in range(2)]
            connection.sendall(
                b"".join(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(b), b) for b in bodies)
            )

    with sockets(talk) as url:
        end = Endpoint(LanguageModel("tiny", url, retries=0))
        found = [end.complete(ASK).text for _ in range(2)]
        end.close()
    assert found[0] == "1"
    assert found[1] in ("3", "5"), "the second question is sent again, on another connection"


def test_a_connection_that_was_closed_while_idle_is_no_fault():
    """Each connection answers once, and is reset as the next request arrives."""
    body = json.dumps(completion("yes")).encode()

    def talk(connection):
        connection.recv(2**16)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        connection.recv(2**16)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with sockets(talk) as url:
        end = Endpoint(LanguageModel("tiny", url, retries=0))
        found = [end.complete(ASK) for _ in range(3)]
        end.close()
    assert [(each.text, each.tries, each.faults) for each in found] == [("yes", 1, {})] * 3


@pytest.mark.parametrize("form", [MARKS, JSON])
@pytest.mark.parametrize(
    "unit", ["<move>", "</move>", "<think>", "</think>", "{", '{"a":', '{"a":[', "[", "}{", "İ", '{"move":"x"}', "[[],"]
)
def test_any_reply_is_read_at_once(form, unit):
    """The old code took hours for some of these."""
    began = time.monotonic()
    read_move(unit * (FOUR_MB // len(unit)), form, LEGAL, LEGAL)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("form", "reply", "action"),
    [
        (MARKS, "<think>perhaps <move>left</move>? No", None),
        (MARKS, "<think>a <move>left</move> b</think> Up.", None),
        (MARKS, "it was open <move>left</move></think>Up.", None),
        (MARKS, "<think>a <move>up</move></think>\n<move>left</move>", 3),
        (MARKS, "<move>left</move><think>good?</think>", 3),
        (MARKS, "x" * FOUR_MB + "<move>left</move>", 3),
        (JSON, '```json\n{"move": "left"}\n```', 3),
        (JSON, '<think>{"move": "up"}</think>{"move": "left"}', 3),
        (JSON, 'Sure: {"move": "left"} Is {that} right?', 3),
        (JSON, '{"move": "up"}, no: {"move": "left", "why": {"a": 1}}', 3),
        (JSON, '<think>{"move": "left"}', None),
        *(
            (MARKS, f"{begin}a <move>up</move>{end} <move>left</move>{begin}<move>up</move>", 3)
            for begin, end in (
                ("<Think>", "</THINK>"),
                ("<think >", "</think >"),
                ("<thought>", "</thought>"),
                ("<reasoning>", "</reasoning>"),
                ("<seed:think>", "</seed:think>"),
                ("◁think▷", "◁/think▷"),
            )
        ),
    ],
)
def test_a_move_is_looked_for_behind_thoughts(form, reply, action):
    assert read_move(reply, form, LEGAL, LEGAL)[0] == action


def test_long_replies_are_not_sent_again(tmp_path):
    """300 kB of thoughts and words in each reply: neither requests nor files grow with them."""
    said = f"<think>{'é' * 100_000}</think>{'x' * 100_000}"
    with serving(Served(lambda body: said + last_legal(body))) as served:
        games, totals = play(served, tmp_path, 1, max_tokens=10_000)
        assert play(served, tmp_path, 1, max_tokens=10_000) == (games, totals)
    assert totals.illegal == 0
    assert max(len(json.dumps(body)) for body in served.asked) < 100_000
    assert sum(file.stat().st_size for file in tmp_path.rglob("*.jsonl")) < 2**16 * totals.calls
    with serving(Served(lambda body: said + last_legal(body))) as served:
        (tmp_path / "games_0.jsonl").unlink()
        assert play(served, tmp_path, 1, max_tokens=10_000) == (games, totals)
    assert served.asked == [], "what was kept is read as it was"


def refusing(*tests, status=400):
    """Replies of a server that answers `status` where the first test (body → error or None) has an error."""

    def reply(body):
        error = next(filter(None, (test(body) for test in tests)), None)
        return last_legal(body) if error is None else refuse(error)

    async def refuse(error):
        body = error if isinstance(error, bytes) else json.dumps(error).encode()
        return web.Response(body=body, status=status)

    return reply


def new_limit(body):
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    return "max_tokens" in body and {
        "error": {"message": words, "param": "max_tokens", "code": "unsupported_parameter"}
    }


def own_temperature(body):
    words = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."
    return "temperature" in body and {"error": {"message": words, "param": "temperature", "code": "unsupported_value"}}


def no_system(body):
    return body["messages"][0]["role"] == "system" and {"object": "error", "message": "System role not supported"}


@pytest.mark.parametrize("names", [{}, {"max_tokens": "max_completion_tokens", "temperature": "", "system": ""}])
def test_a_request_is_sent_in_the_form_that_its_endpoint_takes(names):
    with serving(Served(refusing(new_limit, own_temperature, no_system))) as served:
        end = Endpoint(model(served, retries=0, names=names))
        first, second = end.complete(ASK), end.complete(ASK)
        end.close()
    assert first.faults == ({} if names else {FORM: 3})
    assert second.faults == {}
    assert second.tries == 1
    wanted = {"model": "tiny", "messages": [{"role": "user", "content": "Play.\n\n?"}], "max_completion_tokens": 512}
    assert served.answered == [wanted] * 2


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "This model's maximum context length is 9 tokens.", "code": "context_length_exceeded"}},
        {"object": "error", "message": "max_tokens is too large: 5. This model's maximum context length is 9 tokens"},
    ],
)
def test_the_oldest_steps_are_left_out_of_what_is_too_long(tmp_path, error):
    def reply(body):
        return refusing(lambda body: len(body["messages"]) > 4 and error)(body)

    with serving(Served(reply)) as served:
        games, totals = play(served, tmp_path, 2, retries=0, history=8)
        asked = len(served.asked)
        (tmp_path / "games_0.jsonl").unlink()
        assert play(served, tmp_path, 2, retries=0, history=8) == (games, totals)
    assert len(served.asked) == asked, "shortened alike"
    assert totals.call_faults == {WINDOW: asked - len(served.answered)}
    assert totals.failures == totals.illegal == 0
    assert all("MANUAL" in body["messages"][1]["content"] for body in served.answered)


@pytest.mark.parametrize(
    "words",
    [
        "the request exceeds the available context size",
        "This model's maximum prompt length is 9 but the request contains 12 tokens.",
        "The decoder prompt (length 12) is longer than the maximum model length of 9.",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 9.",
        "input length and `max_tokens` exceed context limit: 8 + 4 > 9",
        "too many tokens: size limit exceeded by 3",
        "Request body too large",
        "the prompt exceeds max length",
        "Your request exceeded model token limit: 9",
        "Range of input length should be [1, 9]",
        "prompt length should not exceed max_num_tokens (9)",
    ],
)
def test_any_refusal_of_a_length_is_understood(words):
    short = ASK[:1]
    with serving(Served(refusing(lambda body: body["messages"] != short and [{"error": words}]))) as served:
        end = Endpoint(model(served, retries=0))
        assert end.complete(ASK, lambda: short).faults == {WINDOW: 1}
        end.close()


def test_a_step_that_alone_is_too_long_ends_the_command(tmp_path, capsys):
    error = {"object": "error", "message": "maximum context length is 9 tokens"}
    with serving(Served(refusing(lambda body: error))) as served:
        path = file_of(tmp_path, served)
        words = ["--env", "ma_rtfm", "--stage", "s1", "--games", "2", "--players", SMALL, "--llm", str(path)]
        assert CommandLine("match", (*words, "--out", str(tmp_path / "out"))).run(command) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (tmp_path / "out" / "match.md").exists()


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        ([{"error": {"message": "Unknown name 'temperature'"}}], 400, "temperature"),
        ("temperature is not allowed", 400, "temperature"),
        ({"errors": ["temperature cannot be used with this model"]}, 400, "temperature"),
        ({"error": {"error": "temperature must be 1 for this model"}}, 400, "temperature"),
        ({"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}]}, 422, "temperature"),
        (b"`temperature` is no longer available", 400, "temperature"),
        (b"<html><p>temperature</p> is incompatible with thinking</html>", 400, "temperature"),
        ({"error": {"message": "No endpoints found that support temperature"}}, 404, "temperature"),
        ({"error": "'response_format.type' must be 'json_schema' or 'text'"}, 400, "response_format"),
        ({"error": {"message": "tiny does not support Json Output"}}, 400, "response_format"),
        ({"detail": [{"loc": ["body", "messages", 0], "msg": "Input should be 'user' or 'assistant'"}]}, 422, "system"),
        ({"message": 'Unexpected role "system"'}, 400, "system"),
        ({"message": "First message must be from user"}, 400, "system"),
    ],
)
def test_any_refusal_of_a_field_is_understood(error, status, name):
    def refused(body):
        return body["messages"][0]["role"] == "system" if name == "system" else name in body

    with serving(Served(refusing(lambda body: refused(body) and error, status=status))) as served:
        end = Endpoint(model(served, retries=0, reply=JSON))
        assert end.complete(ASK).faults == {FORM: 1}
        end.close()
    assert "max_tokens" in served.answered[0]


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "max_tokens is too large: 512. This model supports at most 256 completion tokens"}},
        {"message": "Unsupported value: max_tokens must be in the range [1, 256]", "param": "max_tokens"},
        {"error": {"message": "the maximum value for `max_tokens` is less than the `context_window` for this model"}},
        {"message": "Unknown model", "request": {"temperature": 0, "system": "not supported"}},
    ],
)
def test_an_error_of_something_else_changes_no_form(error):
    with serving(Served(refusing(lambda body: len(served.asked) == 1 and error))) as served:
        end = Endpoint(model(served, retries=0))
        with pytest.raises(EndpointFailed) as raised:
            end.complete(ASK, lambda: ASK[:1])
        assert raised.value.faults == {"400": 1}
        end.complete(ASK)
        end.close()
    assert served.asked[0] == served.asked[1]


def test_a_form_that_was_not_taken_is_not_remembered():
    with serving(
        Served(refusing(lambda body: len(served.asked) <= 2 and {"message": "unknown field temperature"}))
    ) as served:
        end = Endpoint(model(served, retries=0))
        with pytest.raises(EndpointFailed):
            end.complete(ASK)
        end.complete(ASK)
        end.close()
    assert served.asked[0] == served.asked[2] != served.asked[1]


@pytest.mark.parametrize(
    ("finish", "message", "fault"),
    [
        ("length", {"content": "\n\n", "reasoning_content": "Hm"}, THOUGHTS),
        ("LENGTH", {"content": "", "reasoning": "Hm"}, THOUGHTS),
        ("max_tokens", {"content": None, "reasoning_details": [{"text": "Hm"}]}, THOUGHTS),
        ("length", {"content": "<think>\n\n</think>", "reasoning_content": "Hm"}, THOUGHTS),
        ("length", {"content": [{"type": "thinking", "thinking": "Hm"}]}, THOUGHTS),
        ("error", {"content": ""}, GARBAGE),
        ("content_filter", {"content": ""}, GARBAGE),
    ],
)
def test_a_reply_without_an_answer_is_no_illegal_one(tmp_path, finish, message, fault):
    async def think():
        return web.json_response({"choices": [{"finish_reason": finish, "message": message}]})

    with serving(Served(lambda body: think())) as served:
        games, totals = play(served, tmp_path, 2, retries=0)
    assert totals.call_faults == {fault: 2}
    assert (totals.illegal, totals.substituted, totals.failures) == (0, 0, 2)
    assert all(game.ended_by for game in games)


def test_an_evaluation_without_replies_is_refused_and_asks_again(tmp_path):
    words = ["--pretrained", "rtfm-nl", "--splits", "eval", "--episodes", "2", "--play", "greedy"]
    words += ["--players", "llm:small", "--out", str(tmp_path / "out")]
    with serving(Served(lambda body: "fault:500" if failing else last_legal(body))) as served:
        line = CommandLine("evaluate", (*words, "--llm", str(file_of(tmp_path, served, retries=0)), "env.max_cycles=2"))
        failing = True
        assert line.run(evaluation) == 2
        assert len(served.asked) == 2
        failing = False
        assert line.run(evaluation) == 0
    assert {call.failure for call in Calls(tmp_path / "out" / "calls.jsonl").of("llm:small, eval")} == {""}


@pytest.mark.parametrize(
    "line",
    [
        "retries = 1025",
        "timeout = 1e12",
        "body = { day = 2020-01-01 }",
        'names = { messages = "x" }',
        'base_url = "http://a\\u0000b/v1"',
        'base_url = "http://1.2.3/v1"',
        f'base_url = "http://{"a" * 300}/v1"',
    ],
)
def test_what_no_call_can_be_made_of(tmp_path, line):
    path = tmp_path / "models.toml"
    rest = "" if "base_url" in line else 'base_url = "http://127.0.0.1:1/v1"\n'
    path.write_text(f'[small]\nmodel = "tiny"\n{rest}{line}\n')
    with pytest.raises(ConfigurationError):
        read_models(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTP_PROXY", "socks5://127.0.0.1:1"), ("HTTP_PROXY", "ftp://a"), ("SSL_CERT_FILE", "/nonexistent")],
)
def test_what_the_environment_names_is_looked_at_once(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as raised:
        Endpoint(LanguageModel("tiny", "http://127.0.0.1:1/v1"))
    assert name in str(raised.value)


def test_ten_thousand_calls_are_read_at_once(tmp_path):
    """A second and a half for the old code's 2,700."""
    with serving(Served()) as served:
        play(served, tmp_path, 1)
    path = tmp_path / "calls.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines * (50_000 // len(lines) + 1)))
    began = time.monotonic()
    assert len(Calls(path).of(SMALL)) == len(lines)
    assert time.monotonic() - began < 10
