"""The command: where it listens, what it refuses, how it ends; and addresses that make no sense."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.dashboard import serve
from gspo.dashboard.app import make_app
from gspo.dashboard.index import RunIndex
from gspo.dashboard.page import BUNDLE, SCRIPTS, STYLE
from gspo.dashboard.security import Guard, Names
from gspo.errors import RecipeError
from tests.browser.raw_requests import HOST, ask
from tests.browser.recorded import make_run


def command(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(build_app(), ["dashboard", *map(str, words)])
    return result.exit_code, result.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com"])
def test_others_are_not_let_in_without_a_token(host: str, tmp_path: Path) -> None:
    code, said = command(tmp_path, "--host", host)
    assert code == 2
    assert "add --token" in said


def test_a_folder_that_is_not_there_is_a_data_error(tmp_path: Path) -> None:
    code, said = command(tmp_path / "nothing")
    assert code == 3
    assert "there is no folder" in said


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with serve.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        code, said = command(tmp_path, "--port", str(port))
    assert code == 2
    assert f"port {port} of 127.0.0.1 is taken" in said


def test_the_default_port_gives_way_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(serve, "DEFAULT_PORT", port)
        with serve.listen("127.0.0.1", None) as free:
            assert port < free.getsockname()[1] < port + serve.NUM_PORTS
        monkeypatch.setattr(serve, "NUM_PORTS", 1)
        with pytest.raises(RecipeError, match="are taken"):
            serve.listen("127.0.0.1", None)


def test_an_address_that_is_not_this_machines_is_said() -> None:
    with pytest.raises(RecipeError, match="cannot listen on 192.0.2.1"):
        serve.listen("192.0.2.1", 0)


@pytest.mark.parametrize("ask_token", [False, True])
def test_it_serves_prints_its_address_and_ends_with_ctrl_c(tmp_path: Path, ask_token: bool) -> None:
    make_run(tmp_path, "a", steps=1, responses=16)
    words = [sys.executable, "-m", "gspo.cli.main", "dashboard", str(tmp_path), "--port", "0"]
    with subprocess.Popen(
        [*words, *(["--token"] if ask_token else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            found = re.search(r"(http://127\.0\.0\.1:(\d+))(/\S*)", line)
            assert found, line
            if ask_token:
                path = over_the_wire(int(found[2]), found[3])
                assert "303" in path.splitlines()[0]
            else:
                with urlopen(f"{found[1]}/api/runs", timeout=30) as reply:
                    assert json.load(reply)["runs"][0]["name"] == "a"
                    assert "server" not in {name.lower() for name in reply.headers}
                for target in ("/../../etc/passwd", "//etc/passwd", "/%2e%2e/", "/\\..\\x"):
                    assert " 404 " in over_the_wire(int(found[2]), target).splitlines()[0]
        finally:
            server.send_signal(signal.SIGINT)
            said, complained = server.communicate(timeout=30)
    assert (server.returncode, complained) == (0, "")
    assert said.endswith("stopped\n")
    assert ("token=" in said) == ask_token  # the next address, for another browser


def over_the_wire(port: int, target: str) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")


def test_the_dashboard_never_loads_torch() -> None:
    code = "import sys, gspo.dashboard.serve, gspo.dashboard.report, gspo.dashboard.answers; "
    done = subprocess.run(
        [sys.executable, "-c", code + "sys.exit('torch' in sys.modules)"], check=False
    )
    assert done.returncode == 0


# ------------------------------------------------------------------------------------ addresses


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> tuple[Guard, str]:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder, "a", steps=2, responses=16)
    index = RunIndex([folder])
    return make_app(index, Names("127.0.0.1")), index.runs()[0].id


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("metrics", "no name"),
        ("metrics?nme=a", "did you mean 'name'"),
        ("metrics?name=a&after=x", "whole number"),
        ("metrics?name=a&after=1&after=2", "given 2 times"),
        ("metrics?name=" + "a" * 1001, "ask in parts"),
        ("metrics?" + "name=a&" * 201, "ask in parts"),
        ("histograms?name=log_s/histogram&limit=0", "from 1"),
        ("steps/x/units", "whole number"),
        ("steps/-1/units", "whole number"),
        ("steps/1e3/units", "whole number"),
        ("steps/" + "9" * 5000 + "/units", "whole number"),
        ("steps/%D9%A1/units", "whole number"),
        ("steps/1/responses?limit=501", "from 1 to 500"),
        ("steps/1/responses?limit=0", "from 1 to 500"),
        ("steps/1/responses?sort=text", "sort is 'text'"),
        ("steps/1/responses?cut=both", "cut is 'both'"),
        ("steps/1/responses?reward_min=nan", "wanted a number"),
        ("steps/1/responses?descending=yes", "descending is 'yes'"),
        ("steps/1/responses/1.5", "whole number"),
        ("steps/1/top_tokens?limit=1001", "from 1 to 1000"),
        ("overview?x=1", "takes none"),
    ],
)
def test_a_question_that_makes_no_sense_is_400(
    server: tuple[Guard, str], address: str, why: str
) -> None:
    app, run = server
    reply = ask(app, f"/api/runs/{run}/{address}")
    assert reply.status == 400
    assert why in json.loads(reply.body)["error"]


@pytest.mark.parametrize(
    "address",
    ["steps/3/units", "steps/1/responses/16", "histograms?name=x", "nothing", "steps", ""],
)
def test_what_is_not_there_is_404(server: tuple[Guard, str], address: str) -> None:
    app, run = server
    reply = ask(app, f"/api/runs/{run}/{address}")
    assert reply.status == 404
    assert "error" in json.loads(reply.body)


def test_empty_values_are_none_and_questions_are_answered(server: tuple[Guard, str]) -> None:
    app, run = server
    base = f"/api/runs/{run}"
    every = "search=&group=&finish=&cut=&advantage=&verdict=&reward_min=&reward_max=&minibatch="
    answer = json.loads(ask(app, f"{base}/steps/1/responses?{every}&sort=length&limit=3").body)
    assert (answer["total"], answer["matched"], len(answer["rows"])) == (16, 16, 3)
    assert json.loads(ask(app, f"{base}/metrics?name=reward/mean").body)["step"] == [0, 1, 2]
    assert json.loads(ask(app, f"{base}/recipe?against={run}").body)["differences"] == []
    reply = ask(app, f"{base}/steps/1/responses.csv")
    assert reply.headers["content-type"].startswith("text/csv")
    assert reply.headers["content-disposition"] == f'attachment; filename="{run}-step-1.csv"'
    assert json.loads(ask(app, "/api/definitions").body)["metrics"]


def test_the_page_and_its_files_are_served(server: tuple[Guard, str]) -> None:
    app, _ = server
    page = ask(app, "/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    files = re.findall(r'(?:src|href)="(/[^"]+)"', page.body.decode())
    assert sorted(files) == sorted(["/plotly.js", f"/static/{STYLE}", f"/static/{BUNDLE}"])
    script = ask(app, f"/static/{BUNDLE}").body.decode()
    assert re.findall(r"^/\* (\w+\.js) \*/$", script, flags=re.M) == list(SCRIPTS)
    for file in files:
        reply = ask(app, file)
        assert reply.status == 200, file
        assert reply.headers["content-type"].startswith(("text/javascript", "text/css"))
        again = ask(app, file, headers=HOST | {"if-none-match": reply.headers["etag"]})
        assert (again.status, again.body) == (304, b"")
    for name in ("index.html", "../page.py", "%2e%2e%2fpage.py", "", "."):
        assert ask(app, f"/static/{name}").status == 404
