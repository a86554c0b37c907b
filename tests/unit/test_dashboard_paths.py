"""No byte from outside a run folder comes back: not by an address, not by a link, not by a name
that a file of the run mentions."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from gspo.dashboard.app import make_app
from gspo.dashboard.beneath import Beneath
from gspo.dashboard.index import RunIndex
from gspo.dashboard.security import Guard, Names
from gspo.errors import DataError
from tests.browser.raw_requests import ask, ask_all
from tests.browser.recorded import make_run

BESIDE = "beside"  # a run folder outside
CANARY = "canary-7f3a91"  # in every file of it
NUM_PATHS = 5_000

DOTS = (
    "..", "%2e%2e", "%252e%252e", "%25252e%25252e", ".%2e", "%2e.", "..%00", "%c0%ae%c0%ae",
    "%e0%80%ae%e0%80%ae", "\uff0e\uff0e", "\u2025", "....", "..;", ". .", "%u002e%u002e", "..%20",
)  # fmt: skip
SLASHES = (
    "/", "%2f", "%252f", "%25252f", "\\", "%5c", "%255c", "//", "/./", "%c0%af", "%e0%80%af",
    "\u2215", "%ef%bc%8f", "%u2215", "/%00/",
)  # fmt: skip
STARTS = (
    "", "/", "//", "%2f", "file://", "file:///", "file:", "C:\\", "C:/", "\\\\localhost\\", "~/",
    "%00", "./", "\\\\?\\", "file%3a%2f%2f", "/proc/self/root", "/dev/fd/",
)  # fmt: skip
ENDS = ("", "%00", "%00.parquet", ".parquet", "/", "%20", "?x=1", "#x", ";x", "%0a", "::$DATA")
PLACES = (
    "/{x}",
    "/static/{x}",
    "/plotly.js/{x}",
    "/api/{x}",
    "/api/runs/{x}",
    "/api/runs/{x}/overview",
    "/api/runs/{run}/{x}",
    "/api/runs/{run}/steps/{x}",
    "/api/runs/{run}/steps/{x}/units",
    "/api/runs/{run}/steps/{x}/responses.csv",
    "/api/runs/{run}/steps/1/{x}",
    "/api/runs/{run}/steps/1/responses/{x}",
    "/api/runs/{run}/recipe?against={x}",
    "/api/runs/{run}/metrics?name={x}",
    "/api/runs/{run}/histograms?name={x}",
    "/api/pulse?run={x}",
    "/api/runs/{run}/steps/1/responses?search={x}",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with one run, and a folder beside it that nobody may read."""
    place = tmp_path_factory.mktemp("place")
    make_run(place / "runs", "a", steps=2, responses=16)
    secret = make_run(place, BESIDE, steps=2, responses=16, hostile=(f"{CANARY} text",))
    for name in ("metrics", "events", "alarms"):
        with (secret / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps({"step": 2, "kind": CANARY, "cause": CANARY, CANARY: 1.5}) + "\n")
    (secret / "run.json").write_text(json.dumps({"format": 1, "note": CANARY}))
    (secret / "recipe.yaml").write_text(f"name: {CANARY}\n")
    (secret / "file.txt").write_text(CANARY)
    tokenizer = secret / "checkpoints" / "step-000000" / "model" / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace('" therefore"', f'"{CANARY}"'))
    return place


def server(runs: Path) -> tuple[Guard, str]:
    index = RunIndex([runs])
    return make_app(index, Names("127.0.0.1")), next(r.id for r in index.runs() if r.name == "a")


def spellings(place: Path) -> Iterator[str]:
    """Ways to write the path of the canary, without end."""
    choose = random.Random(5).choice
    secret = place / BESIDE
    targets = (str(secret / "file.txt"), f"{BESIDE}/file.txt", f"{BESIDE}/run.json",
               f"{BESIDE}/steps/000001", str(secret), "etc/passwd", BESIDE, "file.txt")  # fmt: skip
    while True:
        slash = choose(SLASHES)
        climb = "".join(choose(DOTS) + slash for _ in range(choose(range(9))))
        target = choose(targets).replace("/", choose((slash, "/", "%2f")))
        yield choose(STARTS) + climb + target + choose(ENDS)


def test_no_path_leads_out_of_the_run_folder(place: Path) -> None:
    app, run = server(place / "runs")
    paths: dict[str, None] = {}
    for number, spelling in enumerate(spellings(place)):
        paths[PLACES[number % len(PLACES)].format(run=run, x=spelling)] = None
        if len(paths) == NUM_PATHS:
            break
    replies = ask_all(app, list(paths))
    for path, reply in zip(paths, replies, strict=True):
        assert reply.status in (200, 400, 404), path
        assert CANARY.encode() not in reply.body, path
        assert b"root:x:0" not in reply.body, path
        assert CANARY not in str(reply.headers), path
        if reply.status == 200:
            assert reply.headers["content-type"].startswith(("application/json", "text/html"))


def test_an_error_repeats_no_more_than_the_question(place: Path) -> None:
    app, _ = server(place / "runs")
    target = place / BESIDE / "file.txt"
    reply = ask(app, f"/api/runs/{quote(str(target), safe='')}/overview")
    assert reply.status == 404
    assert len(reply.body) < 400


LINKS = (
    "metrics.jsonl", "events.jsonl", "alarms.jsonl", "run.json", "recipe.yaml", "run.lock",
    "steps", "steps/000001.parquet", "eval", "eval/000002.parquet", "checkpoints",
    "checkpoints/step-000000", "checkpoints/step-000000/model",
    "checkpoints/step-000000/model/tokenizer.json",
)  # fmt: skip
EVERYTHING = (
    "/api/runs",
    "/api/pulse?run={run}",
    "/api/runs/{run}/overview",
    "/api/runs/{run}/metrics?name=*",
    "/api/runs/{run}/histograms?name=log_s/histogram",
    "/api/runs/{run}/recipe?against={run}",
    "/api/runs/{run}/steps/1/units",
    "/api/runs/{run}/steps/1/responses?limit=500",
    "/api/runs/{run}/steps/1/responses.csv",
    "/api/runs/{run}/steps/1/top_tokens?limit=1000",
    *(f"/api/runs/{{run}}/steps/1/responses/{row}" for row in range(16)),
)


def everything(runs: Path) -> bytes:
    app, run = server(runs)
    replies = ask_all(app, [address.format(run=run) for address in EVERYTHING])
    return b"\n".join(reply.body for reply in replies)


def test_the_canary_would_be_seen(place: Path, tmp_path: Path) -> None:
    """Or the next test would prove nothing: in the folder itself each of the files shows it."""
    shutil.copytree(place / BESIDE, tmp_path / "runs" / "a")
    seen = everything(tmp_path / "runs")
    assert seen.count(CANARY.encode()) > 30


@pytest.mark.parametrize("name", LINKS)
def test_a_link_in_a_run_folder_is_not_followed(place: Path, tmp_path: Path, name: str) -> None:
    run = tmp_path / "runs" / "a"
    shutil.copytree(place / "runs" / "a", run)
    inside = run / name
    shutil.rmtree(inside) if inside.is_dir() else inside.unlink()
    inside.symlink_to(place / BESIDE / name)
    assert CANARY.encode() not in everything(tmp_path / "runs")


def test_a_linked_run_folder_is_not_followed_and_the_list_says_so(
    place: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(place / "runs" / "a", runs / "a")
    (runs / "link").symlink_to(place / BESIDE)
    (runs / "again").symlink_to(runs / "a")
    app, _ = server(runs)
    listed = json.loads(ask(app, "/api/runs").body)["runs"]
    assert {run["name"]: run["status"] for run in listed} == {"a": "finished", "link": "broken"}
    (linked,) = [run for run in listed if run["name"] == "link"]
    assert "link" in linked["problem"]
    replies = ask_all(app, [address.format(run=linked["id"]) for address in EVERYTHING])
    assert not any(CANARY.encode() in reply.body for reply in replies)


def test_a_tokenizer_that_the_recipe_names_is_not_opened(place: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a"
    shutil.copytree(place / "runs" / "a", run)
    shutil.rmtree(run / "checkpoints")
    model = place / BESIDE / "checkpoints" / "step-000000" / "model"
    (run / "recipe.yaml").write_text(f"model: {{path: {str(model).replace(BESIDE, 'x')}}}\n")
    (place / "x").symlink_to(place / BESIDE)
    seen = everything(tmp_path / "runs")
    (place / "x").unlink()
    assert CANARY.encode() not in seen


def test_a_pipe_and_a_device_do_not_hold_the_server(place: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a"
    shutil.copytree(place / "runs" / "a", run)
    for name in ("metrics.jsonl", "run.lock", "steps/000001.parquet"):
        (run / name).unlink()
        os.mkfifo(run / name)
    seen = everything(tmp_path / "runs")
    assert b"metrics.jsonl is no plain file" in seen


@pytest.mark.parametrize("part", ["..", ".", "", "a/b", "/etc", "a\0b"])
def test_a_part_of_a_name_is_one_name(tmp_path: Path, part: str) -> None:
    with pytest.raises(DataError, match="no name of a file"):
        Beneath(tmp_path).open(part, "x")


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert Beneath(tmp_path).read("a", max_bytes=5) == b"12345"
    with pytest.raises(DataError, match="more than 4 bytes"):
        Beneath(tmp_path).read("a", max_bytes=4)
    assert Beneath(tmp_path).read("b", max_bytes=4) is None
    assert Beneath(tmp_path / "nowhere").names("steps") == []
