"""Who may ask. A page of another site can reach a server on this machine through the browser of
whoever looks at that page: so the server only reads, only answers to its own names, and to no
request that another site's page made. Where others can reach it, it asks for a token too.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gspo.dashboard.replies import failure

LOOPBACK = ("localhost", "127.0.0.1", "::1")
METHODS = ("GET", "HEAD")
TOKEN_BYTES = 32
LOGIN = "/login"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "  # Plotly's styles
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Only this machine reaches a server that listens there."""
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


class Names:
    """The names a server answers to. A name of another site that points here is none of them."""

    def __init__(self, host: str) -> None:
        """host: where it listens. On all addresses it answers to any address, which nobody can
        register as a name, and to the machine's own name."""
        everywhere = _address(host)
        self._any_address = everywhere is not None and everywhere.is_unspecified
        machine = (socket.gethostname(), socket.getfqdn()) if self._any_address else ()
        self._names = {name.lower() for name in (*LOOPBACK, host, *machine)}

    def __contains__(self, authority: str) -> bool:
        """authority: a Host header, with or without a port."""
        try:
            name = urlsplit(f"//{authority}").hostname
            _ = urlsplit(f"//{authority}").port
        except ValueError:
            return False
        if not name or any(char in authority for char in "@/\\?#"):
            return False
        return name in self._names or (self._any_address and _address(name) is not None)


class Login:
    """A secret for an address that works once, and one for the cookie that it sets."""

    def __init__(self, port: int, on_used: Callable[[str], None]) -> None:
        """on_used: called with the next address's path, once the last one was used."""
        self.cookie = f"gspo_{port}"  # cookies do not keep ports apart
        self._session = secrets.token_urlsafe(TOKEN_BYTES)
        self._once = secrets.token_urlsafe(TOKEN_BYTES)
        self._on_used = on_used
        self._lock = threading.Lock()

    @property
    def path(self) -> str:
        """The address that works once, without the server's name."""
        return f"{LOGIN}?token={self._once}"

    def enter(self, query: str) -> str | None:
        """The cookie's header for the right token, which then is used up; None for another."""
        given = parse_qs(query).get("token", [""])[0]
        with self._lock:
            if not _same(given, self._once):
                return None
            self._once = secrets.token_urlsafe(TOKEN_BYTES)
        self._on_used(self.path)
        return f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/"

    def known(self, headers: Mapping[str, str]) -> bool:
        """The request carries the cookie."""
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and _same(found.value, self._session)


class Guard:
    """Around the whole application: refuses what must not be answered, and puts the headers on
    every answer."""

    def __init__(self, app: ASGIApp, names: Names, login: Login | None) -> None:
        self._app, self._names, self._login = app, names, login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: closed before it is open
            await send({"type": "websocket.close", "code": 1008})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._answer(scope)(scope, receive, with_headers)

    def _answer(self, scope: Scope) -> ASGIApp:
        headers = Headers(scope=scope)
        if scope["method"] not in METHODS:
            return failure(405, f"{scope['method']} is refused: this server only reads; use GET")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._names:
            return failure(403, "the Host header names another server: open the printed address")
        if not self._own_page(scope["path"], headers):
            return failure(403, "a page of another site asked: open the printed address instead")
        if self._login is None:
            return self._app
        if scope["path"] == LOGIN:
            return _entered(self._login, scope["query_string"].decode("latin-1"))
        if not self._login.known(headers):
            return failure(403, "no token: open the address that the terminal shows, it works once")
        return self._app

    def _own_page(self, path: str, headers: Headers) -> bool:
        """Asked by this server's page, by hand, or by something that is no browser. A link of
        another site may lead to the page itself: that site learns nothing by it."""
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin):
            return False
        site = headers.get("sec-fetch-site", "none")
        opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
        linked = path in ("/", LOGIN) and opened == ("navigate", "document")
        return site in ("none", "same-origin") or linked

    def _is_own(self, origin: str) -> bool:
        scheme, _, authority = origin.partition("://")
        return scheme in ("http", "https") and authority in self._names


def _entered(login: Login, query: str) -> ASGIApp:
    cookie = login.enter(query)
    if cookie is None:
        return failure(
            403, "this address was used, or is another run's: the terminal shows the one that works"
        )
    return RedirectResponse("/", status_code=303, headers={"set-cookie": cookie})


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
