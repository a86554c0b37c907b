"""One browser, one server and one folder of runs for all tests here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gspo.dashboard.folder import run_id
from tests.browser.kinds import make_kinds
from tests.browser.recorded import make_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.serving import Serving
    from tests.browser.viewer import Viewer

CONTENT = "() => [innerWidth, document.querySelector('.frame').getBoundingClientRect().bottom]"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium, which all tests share."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install 'gspo[dev]'"
    )
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> Path:
    """Runs "a" of 12 steps and "b" of 8, and one run of each kind."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder, "a", steps=12, seed=0)
    make_run(folder, "b", steps=8, seed=1, lr=1e-4)
    make_kinds(folder)
    return folder


@pytest.fixture(scope="session")
def serving(runs) -> Iterator[Serving]:
    """The server of those runs."""
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    from tests.browser.serving import Serving

    with Serving(runs) as serving:
        yield serving


@pytest.fixture(scope="session")
def ids(runs) -> dict[str, str]:
    """Id of each run by its name."""
    return {path.name: run_id(path.resolve()) for path in runs.iterdir()}


@pytest.fixture(scope="session")
def look(chromium) -> Iterator[Callable[..., Viewer]]:
    """look(origin, ids): a page that is closed at the end."""
    from tests.browser.viewer import HEIGHT, WIDTH, Viewer

    opened = []

    def look(
        origin: str, ids: dict[str, str], *, width: int = WIDTH, height: int = HEIGHT, **context
    ) -> Viewer:
        page = chromium.new_page(viewport={"width": width, "height": height}, **context)
        opened.append(page)
        return Viewer(page, origin, ids)

    yield look
    for page in opened:
        page.close()


@pytest.fixture(scope="session")
def viewer(look, serving, ids) -> Viewer:
    """A page of the recorded runs, opened once: tests go to another address within it."""
    from tests.browser.viewer import TALLEST

    viewer = look(serving.origin, ids, height=TALLEST)
    viewer.open("a")
    return viewer


@pytest.fixture(scope="session")
def shoot() -> Callable[[Viewer, str], None]:
    """Keeps a picture of the whole view in the folder that GSPO_SCREENSHOTS names, if it does."""
    folder = os.environ.get("GSPO_SCREENSHOTS")

    def shoot(viewer: Viewer, name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            size = viewer.page.evaluate(CONTENT)
            clip = {"x": 0, "y": 0, "width": size[0], "height": size[1]}
            path = Path(folder) / f"{name}.png"
            viewer.page.screenshot(path=path, clip=clip, full_page=True)

    return shoot
