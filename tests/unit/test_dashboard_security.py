"""Who is answered, and with which headers."""

from __future__ import annotations

import hmac
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from gspo.dashboard import security
from gspo.dashboard.app import make_app
from gspo.dashboard.index import RunIndex
from gspo.dashboard.page import BUNDLE
from gspo.dashboard.security import Guard, Login, Names, is_loopback
from tests import loops
from tests.browser.raw_requests import HOST, Reply, ask

ADDRESSES = ("/", "/api/runs", "/plotly.js", f"/static/{BUNDLE}", "/nothing", "/api/runs/x/y")
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.fixture
def app(tmp_path: Path) -> Guard:
    return make_app(RunIndex([tmp_path]), Names("127.0.0.1"))


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_answer_carries_the_headers(app: Guard, address: str) -> None:
    headers = ask(app, address).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "connect-src": "'self'",
        "font-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert not any(name.startswith("access-control") for name in headers)
    assert headers["cache-control"] == (
        "no-store" if "api" in address else headers["cache-control"]
    )


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND"]
)
@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_but_reading(app: Guard, method: str, address: str) -> None:
    reply = ask(app, address, method=method)
    assert reply.status == 405
    assert "error" in json.loads(reply.body)


def test_head_is_get_without_the_body(app: Guard) -> None:
    get, head = ask(app, "/api/runs"), ask(app, "/api/runs", method="HEAD")
    assert (head.status, head.headers["content-length"]) == (200, get.headers["content-length"])


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8470", "LOCALHOST", "127.0.0.1", "127.0.0.1:1", "[::1]:8470"]
)
def test_its_own_names_are_answered(app: Guard, host: str) -> None:
    assert ask(app, "/api/runs", headers={"host": host}).status == 200


FOREIGN_HOSTS = (
    "evil.example", "evil.example:8470", "localhost.evil.example", "127.0.0.1.nip.io",
    "evil.example#127.0.0.1", "127.0.0.1@evil.example", "evil.example@127.0.0.1", "127.1",
    "2130706433", "0.0.0.0", "192.168.1.5", "", "127.0.0.1:x", "127.0.0.1:99999", "[::1",
    "127.0.0.1/", "[::ffff:127.0.0.1]", "127.0.0.1 evil.example", "localhost.",
)  # fmt: skip


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_another_name_is_refused(app: Guard, host: str) -> None:
    for address in ADDRESSES:
        refused(ask(app, address, headers={"host": host}), "Host")


def test_no_host_and_two_hosts_are_refused(app: Guard) -> None:
    refused(ask(app, "/", headers={}), "Host")
    refused(ask(app, "/", headers={"host": "127.0.0.1", "Host": "127.0.0.1"}), "Host")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "file://"},
        {"origin": "https://localhost.evil.example"},
        {"origin": "ftp://localhost"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    ],
)
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_of_another_site_is_refused(
    app: Guard, headers: dict[str, str], address: str
) -> None:
    refused(ask(app, address, headers=HOST | headers), "another site")


def test_a_link_of_another_site_may_open_the_page_and_nothing_else(app: Guard) -> None:
    assert ask(app, "/", headers=HOST | LINK).status != 403
    refused(ask(app, "/api/runs", headers=HOST | LINK), "another site")


def test_the_page_itself_is_answered(app: Guard) -> None:
    own = {"origin": "http://127.0.0.1:8470", "sec-fetch-site": "same-origin"}
    assert ask(app, "/api/runs", headers=HOST | own).status == 200


def refused(reply: Reply, why: str) -> None:
    assert reply.status == 403
    assert why in json.loads(reply.body)["error"]
    assert reply.headers["content-security-policy"]


# ------------------------------------------------------------------------------------- the token


@pytest.fixture
def guarded(tmp_path: Path) -> SimpleNamespace:
    said: list[str] = []
    login = Login(8470, said.append)
    app = make_app(RunIndex([tmp_path]), Names("127.0.0.1"), login)
    return SimpleNamespace(app=app, login=login, said=said)


def test_without_a_token_nothing_is_answered(guarded: SimpleNamespace) -> None:
    for address in ADDRESSES:
        refused(ask(guarded.app, address), "no token")
    for cookie in (
        "gspo_8470=",
        "gspo_8470=x",
        "x=y; gspo_8470=\x7f",
        "gspo_8470",
        "=;=",
        "a" * 5000,
    ):
        refused(ask(guarded.app, "/api/runs", headers=HOST | {"cookie": cookie}), "no token")


def test_the_address_works_once_and_sets_a_cookie_that_no_script_reads(
    guarded: SimpleNamespace,
) -> None:
    first = guarded.login.path
    reply = ask(guarded.app, first)
    assert (reply.status, reply.headers["location"]) == (303, "/")
    value, *attributes = reply.headers["set-cookie"].split("; ")
    assert attributes == ["HttpOnly", "SameSite=Strict", "Path=/"]
    name, _, secret = value.partition("=")
    assert name == "gspo_8470"
    assert len(secret) >= 43  # 32 bytes in base 64
    assert secret not in first
    assert ask(guarded.app, "/api/runs", headers=HOST | {"cookie": value}).status == 200
    refused(ask(guarded.app, first), "was used")
    assert guarded.said == [guarded.login.path] != [first]
    assert ask(guarded.app, guarded.login.path).status == 303


@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=x", "?token", "?token=%ff&token=x", "?x=1"]
)
def test_a_wrong_token_is_refused_and_uses_nothing_up(guarded: SimpleNamespace, query: str) -> None:
    refused(ask(guarded.app, f"/login{query}"), "this address was used")
    assert guarded.said == []
    assert ask(guarded.app, guarded.login.path).status == 303


def test_tokens_are_compared_in_constant_time(
    guarded: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []

    def compare(given: bytes, wanted: bytes) -> bool:
        seen.append(given)
        return hmac.compare_digest(given, wanted)

    monkeypatch.setattr(security, "hmac", SimpleNamespace(compare_digest=compare))
    ask(guarded.app, "/login?token=guess")
    ask(guarded.app, "/api/runs", headers=HOST | {"cookie": "gspo_8470=guess"})
    assert seen == [b"guess", b"guess"]


def test_two_servers_have_different_secrets(guarded: SimpleNamespace, tmp_path: Path) -> None:
    other = make_app(RunIndex([tmp_path]), Names("127.0.0.1"), Login(8470, lambda path: None))
    refused(ask(other, guarded.login.path), "this address was used")


# ------------------------------------------------------------------------------------ the address


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.0.0.2", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_what_counts_as_this_machine(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_on_all_addresses_any_address_is_a_name_but_no_other_name() -> None:
    names = Names("0.0.0.0")
    assert "192.168.1.5:8470" in names
    assert "[2001:db8::1]:8470" in names
    assert "evil.example" not in names
    assert "192.168.1.5" in Names("192.168.1.5")
    assert "192.168.1.6" not in Names("192.168.1.5")


async def nothing(*_: object) -> None:
    raise AssertionError("the guard lets no web socket through")


def test_a_web_socket_is_closed() -> None:
    sent: list[object] = []

    async def send(message: object) -> None:
        sent.append(message)

    guard = Guard(nothing, Names("127.0.0.1"), None)
    loops.run(guard({"type": "websocket", "headers": []}, nothing, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
