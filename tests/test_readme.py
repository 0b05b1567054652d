"""The README's commands, programs, links and names, held against the project."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lease.db.resources import folder

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
COMMANDS = [
    "python3 -m venv .venv && .venv/bin/pip install -q '.[demo]' && .venv/bin/lease demo",
    "python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/pytest",
]


def test_readme_begins_with_the_two_commands():
    """A newcomer's first two lines to type are the demo and the tests."""
    lines = re.findall(r"^```\n(.*?)\n```", README, re.DOTALL | re.MULTILINE)

    assert lines[:2] == COMMANDS


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_readme_programs_run_as_they_stand(program, tmp_path):
    """Each program runs to its end in an empty folder and complains of nothing but of SQLite."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:SQLite", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_readme_links_lead_to_its_own_headings():
    """Each link to a heading has that heading."""
    headings = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    }

    links = set(re.findall(r"\]\(#([^)]+)\)", README))

    assert links
    assert set() == links - headings


def test_readme_names_the_statements_of_each_verb():
    """Every statement of a verb of the queue stands in the README, by name or by its group."""
    named = set(re.findall(r"`([a-z]+(?:_[a-z*]+)+)`", README))
    verbs = ("open", "enqueue", "claim", "finish", "redrive", "renew")
    stems = {
        file.name.removesuffix(".sql")
        for file in folder("sql", "sqlite").iterdir()
        if file.name.startswith(verbs) and "_bare_" not in file.name
    }

    assert stems
    assert stems - named == set()
