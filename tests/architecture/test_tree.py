"""The tree speaks of the project, not of a machine it was written on."""

import re

MACHINE_PATH = re.compile(r"/(?:work|root|home/\w+|tmp/bash)/")


def test_the_rule_sees_a_machine_path():
    assert MACHINE_PATH.search("read /" + "work/main/x.py")
    assert not MACHINE_PATH.search("src/network/x.py, docs/how-to/homework/")


def test_no_file_names_a_machine_path(project_files):
    assert len(project_files) > 50
    found = []
    for path in project_files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or a table
        found += [f"{path.name}:{m.group()}" for m in MACHINE_PATH.finditer(text)]
    assert found == []


def test_every_path_the_guide_names_exists(root):
    guide = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = set(
        re.findall(r"`((?:src|tests|docs|recipes|\.ci)/[\w./-]*|\w+\.(?:md|toml|txt))`", guide)
    )
    assert len(paths) > 30
    assert sorted(path for path in paths if not (root / path).exists()) == []


def test_the_guide_opens_with_where_to_change_what(root):
    lines = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line][1] == "## Where do I change…?"


def test_every_decision_is_in_their_list(root):
    folder = root / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    records = sorted(folder.glob("[0-9]*.md"))
    assert [path.name for path in records if f"({path.name})" not in listed] == []
    numbers = [path.name[:4] for path in records]
    assert len(set(numbers)) == len(numbers), numbers
