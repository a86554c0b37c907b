"""A run that trains while somebody looks, a server that goes and comes back, and runs that have
nothing to show."""

from __future__ import annotations

import shutil

import pytest

from gspo.dashboard.folder import run_id
from tests.browser.kinds import EXPLAINED
from tests.browser.recorded import Recording

WORDS = {
    "empty": "No step is recorded yet",
    "broken": "broken cannot be read",
}


@pytest.fixture
def live(tmp_path, look):
    """A page of a run that is being recorded: viewer, recording, server."""
    from tests.browser.serving import Serving

    ids = {name: run_id((tmp_path / name).resolve()) for name in ("live", "next")}
    with Serving(tmp_path) as serving, Recording(tmp_path, "live", total_steps=6) as recording:
        viewer = look(serving.origin, ids)
        yield viewer, recording, serving
        viewer.page.close()


def shows(viewer, step):
    viewer.page.wait_for_selector(f"body[data-step='{step}']")
    viewer.settle()


def test_new_steps_appear_and_only_they_are_asked_for(live):
    viewer, recording, _ = live
    recording.add_step()
    viewer.open("live")
    assert viewer.page.locator(".pill.running").is_visible()
    for step in (2, 3):
        viewer.asked.clear()
        recording.add_step()
        shows(viewer, step)
        asked = [url for url in viewer.asked if "/metrics?" in url]
        assert [url.rpartition("after=")[2] for url in asked] == [str(max(0, step - 2))]
        reward = viewer.page.locator("[data-metric='reward/mean'][data-step]").first
        assert reward.get_attribute("data-step") == str(step)
        assert viewer.chart("reward")[0]["x"] == [*range(1, step + 1)]
    recording.alarm(cause="seen while it trained")
    viewer.page.get_by_text("seen while it trained").wait_for()
    the_step_chosen_stays_while_new_ones_come(viewer, recording)
    viewer.check()


def the_step_chosen_stays_while_new_ones_come(viewer, recording):
    viewer.go("live", view="trust", step=1)
    recording.add_step()
    shows(viewer, 4)
    assert viewer.page.get_by_label("Step number").input_value() == "1"
    viewer.page.get_by_role("button", name="Newest").click()
    viewer.settle()
    recording.add_step()
    shows(viewer, 5)
    assert viewer.page.get_by_label("Step number").input_value() == "5"


def test_the_server_goes_and_comes_back_the_run_ends_and_another_begins(live, tmp_path):
    viewer, recording, serving = live
    recording.add_step()
    viewer.open("live")
    serving.stop()
    banner = viewer.page.get_by_role("alert")
    banner.get_by_text("does not answer").wait_for()
    assert viewer.page.locator("[data-metric='reward/mean']").first.is_visible()
    recording.add_step()
    serving.start()
    shows(viewer, 2)
    banner.wait_for(state="hidden")
    # The browser itself writes down what nobody answered.
    viewer.wrong = [text for text in viewer.wrong if "ERR_CONNECTION_REFUSED" not in text]
    recording.finish()
    recording.close()
    viewer.page.locator(".pill.finished").wait_for()
    with Recording(tmp_path, "next", seed=1) as other:
        viewer.page.locator(".run-name", has_text="next").wait_for()
        other.add_step()
        viewer.go("live", "next")
        names = [trace["name"] for trace in viewer.chart("reward") if trace["y"] != [None]]
        assert [name.partition(":")[0] for name in names] == ["live", "live", "next", "next"]
    viewer.check()


def test_a_folder_without_runs_says_so_until_there_is_one(tmp_path, look):
    from tests.browser.serving import Serving

    with Serving(tmp_path) as serving:
        viewer = look(serving.origin, {})
        viewer.open()
        said = viewer.page.locator("#explain")
        assert "No runs yet" in said.text_content()
        assert str(tmp_path) in said.text_content()
        with Recording(tmp_path, "first") as recording:
            recording.add_step()
            shows(viewer, 1)
        assert said.is_hidden()
        viewer.check()
        viewer.page.close()


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_run_without_anything_to_show_is_explained(viewer, name):
    for view in ("working", "trust", "rollouts"):
        viewer.go(name, view=view)
        said = viewer.page.locator("#explain")
        assert WORDS[name] in said.text_content()
        assert viewer.page.locator("section:not([hidden]) .panel:visible").count() == 0
    viewer.check()


def test_a_run_that_is_gone_is_explained(look, tmp_path):
    from tests.browser.serving import Serving

    ids = {name: run_id((tmp_path / name).resolve()) for name in ("going", "staying")}
    for name in ids:
        with Recording(tmp_path, name) as recording:
            recording.add_step()
    with Serving(tmp_path) as serving:
        viewer = look(serving.origin, ids)
        viewer.open("going")
        shutil.rmtree(tmp_path / "going")
        viewer.page.locator(".run-name", has_text="going").wait_for(state="detached")
        shows(viewer, 1)
        assert "staying" in viewer.page.locator("#head").text_content()
        viewer.page.close()
