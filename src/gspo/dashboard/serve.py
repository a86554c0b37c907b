"""The server: where it listens, and what it says about it."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from gspo.dashboard import answers
from gspo.dashboard.app import make_app
from gspo.dashboard.index import RunIndex
from gspo.dashboard.security import Login, Names, is_loopback
from gspo.errors import DataError, RecipeError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8470
NUM_PORTS = 20  # tried upwards from the default one
STOP_WITHIN_S = 1  # answers take milliseconds; a browser's open connection must not hold the end


def serve(
    given: Sequence[Path], *, host: str, port: int | None, ask_token: bool, open_page: bool
) -> None:
    """Serve until Ctrl-C. port: None takes the default one, or the next that is free.

    Raises RecipeError for a host that others reach without a token, or a port that is taken;
    DataError for a folder that is not there.
    """
    if not is_loopback(host) and not ask_token:
        raise RecipeError(
            f"--host {host} lets other machines in, and whoever reaches the port could read every "
            f"run: add --token, or leave --host out ({DEFAULT_HOST}) and use an SSH tunnel"
        )
    index = RunIndex(given)
    threading.Thread(target=read_ahead, args=[index], daemon=True).start()
    listening = listen(host, port)
    with listening:
        bound = listening.getsockname()[1]
        base = f"http://{_shown(host)}:{bound}"
        login = Login(bound, lambda path: _say(f"for another browser: {base}{path}"))
        _say(f"runs of {index.folder}: {base}{login.path if ask_token else '/'}")
        _say("Ctrl-C ends it")
        if open_page:
            webbrowser.open(f"{base}{login.path if ask_token else '/'}")
        app = make_app(index, Names(host), login if ask_token else None)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,  # an address may hold the token
            server_header=False,
            timeout_graceful_shutdown=STOP_WITHIN_S,
        )
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            _say("stopped")


def read_ahead(index: RunIndex) -> None:
    """What a page asks for first, read while the browser starts: the list, and the newest run."""
    trained = [row["id"] for row in answers.runs(index)["runs"] if row["step"]]
    with contextlib.suppress(DataError):  # whoever asks for it is told
        for run in map(index.find, trained[:1]):
            with run.lock:
                answers.overview(run)


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens. Raises RecipeError when it cannot."""
    ports = range(DEFAULT_PORT, DEFAULT_PORT + NUM_PORTS) if port is None else (port,)
    for number in ports:
        try:
            return _bound(host, number)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            reason = error.strerror or str(error)
            raise RecipeError(
                f"cannot listen on {host} port {number} ({reason}): choose others with --host and "
                "--port"
            ) from error
    taken = (
        f"port {port} of {host} is" if port else f"ports {ports[0]} to {ports[-1]} of {host} are"
    )
    raise RecipeError(f"{taken} taken: choose another one with --port, or 0 for any that is free")


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


def _shown(host: str) -> str:
    """As it stands in an address: an unspecified one is opened by the machine's name."""
    if host in ("0.0.0.0", "::"):  # noqa: S104  said here, not listened on
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  this is what the command prints
