"""The dashboard's server in a thread of this process."""

from __future__ import annotations

import threading
from pathlib import Path

import uvicorn

from gspo.dashboard.app import make_app
from gspo.dashboard.index import RunIndex
from gspo.dashboard.security import Names
from gspo.dashboard.serve import DEFAULT_HOST, listen


class Serving:
    """Serves some folders inside a `with`. After `stop`, `start` listens at the same address."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._port = 0  # any that is free

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://{DEFAULT_HOST}:{self._port}"

    def __enter__(self) -> Serving:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listening when this returns: who asks early waits."""
        self._socket = listen(DEFAULT_HOST, self._port)
        self._port = self._socket.getsockname()[1]
        app = make_app(RunIndex(self._folders), Names(DEFAULT_HOST))
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Nobody listens when this returns."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
