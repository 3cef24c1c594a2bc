"""Which address a request counts to, what is remembered of addresses, and how much is logged of what they do."""

import logging

import pytest

from magrounding.errors import ConfigurationError
from magrounding.extensions.people.web.addresses import Proxies, quotas
from magrounding.extensions.people.web.limits import Limits, OncePerKind


@pytest.mark.parametrize(
    ("peer", "forwarded", "visitor"),
    [
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["203.0.113.7"], "203.0.113.7"),
        ("127.0.0.1", ["198.51.100.1, 203.0.113.7"], "203.0.113.7"),  # what stands before, the visitor has written
        ("127.0.0.1", ["198.51.100.1", "203.0.113.7, 10.1.2.3"], "203.0.113.7"),  # a chain of proxies
        ("::ffff:127.0.0.1", ["203.0.113.7"], "203.0.113.7"),
        ("127.0.0.1", ["203.0.113.7:4711"], "203.0.113.7"),
        ("127.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::/64"),
        ("127.0.0.1", ["2001:db8::2"], "2001:db8::/64"),  # the rest anybody may choose
        ("127.0.0.1", ["203.0.113.7, nonsense"], "127.0.0.1"),
        ("127.0.0.1", ["10.9.9.9"], "10.9.9.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),  # no proxy of ours: its header says nothing
    ],
)
def test_a_request_counts_to_the_last_address_that_is_no_trusted_proxy(peer, forwarded, visitor):
    found = Proxies(["127.0.0.1", "10.0.0.0/8"]).visitor(peer, forwarded)
    assert found == (visitor if visitor != "127.0.0.1" else peer)


@pytest.mark.parametrize("text", ["localhost", "10.0.0.1/8", "", "1.2.3"])
def test_proxies_are_addresses_or_networks(text):
    with pytest.raises(ConfigurationError):
        Proxies([text])


def test_addresses_that_come_later_do_not_give_a_busy_one_its_requests_back():
    quota_of = quotas(Limits(request_burst=1, requests_per_second=0.0))
    for k in range(20_000):
        quota_of(f"address {k}")
        assert quota_of("busy").requests.take() == (k == 0)


def test_a_log_has_one_line_of_a_kind_in_a_while():
    now, lines = [0.0], []
    log, handler = logging.Logger("flood"), logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    handler.addFilter(OncePerKind(60.0, lambda: now[0]))
    log.addHandler(handler)
    for k in range(1000):
        log.error("socket.accept() out of system resource\nsocket: %s", k)
        log.error("another: %s", k)
    assert lines == ["socket.accept() out of system resource\nsocket: 0", "another: 0"]
    now[0] = 61.0
    log.error("another: %s", 1000)
    assert lines[2:] == ["another: 1000 (and 999 more like this)"]
    for k in range(1000):
        log.error(f"kind {k}")
    assert len(lines) < 300
