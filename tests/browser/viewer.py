"""One page in the browser, watched: what it asked for, what went wrong in it, and when it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page, Request

#: Counts answers under way, and refusals of the page's policy. Runs before the page's scripts.
WATCH = """
window.flying = 0;
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.refused.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
for (const [owner, name] of [[window, "fetch"], [Response.prototype, "json"]]) {
  const real = owner[name];
  owner[name] = async function (...given) {
    window.flying++;
    try { return await real.apply(this, given); } finally { window.flying--; }
  };
}
"""
#: Answers first, then the charts that were made of them.
SETTLED = """async () => {
  do {
    while (window.flying) await new Promise((resolve) => requestAnimationFrame(resolve));
    await G.whenDrawn();
  } while (window.flying);
}"""
UNTIL = """async (given) => {
  const test = TEST;
  while (!test(given)) await new Promise((resolve) => requestAnimationFrame(resolve));
}"""
WIDTH, HEIGHT = 1600, 1000
TALLEST = 6000  # holds every view, so that all of it is drawn


class Viewer:
    """A page of the dashboard. runs: id of each run by its name."""

    def __init__(self, page: Page, origin: str, runs: Mapping[str, str]) -> None:
        self.page = page
        self.origin = origin
        self.runs = runs
        self.wrong: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(10_000)
        page.add_init_script(WATCH)
        page.on("dialog", lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda said: said.type == "error" and self.wrong.append(said.text))
        page.on("request", self._asked)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(("data:", "blob:")):
            self.asked.append(request.url.partition("#")[0])

    @property
    def foreign(self) -> list[str]:
        """What it asked of anybody but where it came from."""
        return [url for url in self.asked if not f"{url}/".startswith(f"{self.origin}/")]

    def open(self, *names: str, **chosen: object) -> None:
        """A fresh page; names: runs. Returns when it is drawn."""
        self.page.goto("about:blank")  # another hash alone would load nothing
        self.page.goto(f"{self.origin}{self._hash(names, chosen)}")
        self.page.wait_for_selector("body[data-ready]")
        self.settle()

    def go(self, *names: str, **chosen: object) -> None:
        """The same page, somewhere else: what a link within it would do."""
        self.page.evaluate("(hash) => { location.hash = hash; }", self._hash(names, chosen))
        self.settle()

    def _hash(self, names: Sequence[str], chosen: Mapping[str, object]) -> str:
        runs = {"runs": ",".join(self.runs[name] for name in names)} if names else {}
        return "#" + urlencode({**runs, **chosen})

    def settle(self) -> None:
        """Nothing is asked for, nothing waits to be drawn."""
        self.page.evaluate(SETTLED)

    def until(self, test: str, given: object = None) -> None:
        """test: a function in JavaScript; looked at in every frame until it holds."""
        self.page.evaluate(UNTIL.replace("TEST", test), given)

    def check(self) -> None:
        """Nothing went wrong so far, and nobody else was asked for anything."""
        found = {
            "wrong": self.wrong,
            "refused": self.page.evaluate("() => window.refused"),
            "foreign": self.foreign,
            "pwned": self.page.evaluate("() => window.__pwned"),
        }
        assert not any(found.values()), found

    def chart(self, name: str) -> list[dict[str, Any]]:
        """The traces that Plotly holds."""
        return self.page.evaluate(
            """(name) => document.querySelector(`section:not([hidden]) [data-chart="${name}"]`)
              .data.map(({type, name, x, y, z, error_y}) => ({type, name,
                x: x && Array.from(x), y: y && Array.from(y), z: z && z.map((row) => Array.from(row))}))""",
            name,
        )

    def resize(self, width: int, height: int = HEIGHT) -> None:
        """As if somebody pulled at the window."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.settle()
