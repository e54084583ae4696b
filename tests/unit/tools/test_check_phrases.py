"""The check of wording finds what it must and leaves ordinary words alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "tools" / "check_phrases.py"


def _run(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    command = [sys.executable, str(SCRIPT), str(page)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("phrase", ["kit" + "chen", "jud" + "ge", "in the " + "mean"])
def test_a_planted_phrase_fails_and_its_line_is_named(
    tmp_path: Path, phrase: str, number: int
) -> None:
    done = _run(tmp_path, "\n" * number + f"The {phrase.capitalize()} is here.\n")
    assert done.returncode == 1
    assert f"page.md:{number + 1}:" in done.stdout
    assert "use:" in done.stdout


def test_ordinary_words_pass(tmp_path: Path) -> None:
    text = "We learn from early rows in the meantime; a real-world dearth of wells, chosen early."
    done = _run(tmp_path, text)
    assert (done.returncode, done.stdout) == (0, "")


def test_british_spelling_fails_the_spelling_check(tmp_path: Path) -> None:
    typos = Path(sys.executable).with_name("typos")
    config = SCRIPT.parents[1] / "pyproject.toml"
    page = tmp_path / "page.md"
    for text, status in (("We " + "optim" + "ise trees.", 2), ("We optimize trees.", 0)):
        page.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [typos, "--config", config, page], capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
