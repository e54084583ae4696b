"""What the repository says of itself is true: layers, README commands, packaged files."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def test_imports_go_one_way():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_and_the_type_marker_are_packaged():
    assert (files("hardwood") / "py.typed").is_file()
    header = (files("hardwood") / "data" / "penguins.csv").read_text().splitlines()[0]
    assert header.startswith("species,island,bill_length_mm")


def test_readme_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", README.read_text()))
    assert {"demo", "test"} <= named
    assert named <= targets


def test_readme_hardwood_commands_exist():
    from hardwood.cli.app import app

    commands = {command.callback.__name__ for command in app.registered_commands}
    commands |= {group.typer_instance.info.name for group in app.registered_groups}
    blocks = "".join(re.findall(r"^```\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL))
    named = set(re.findall(r"^hardwood ([a-z]+)", blocks, re.MULTILINE))
    assert {"fit", "predict", "evaluate", "describe"} <= named
    assert named <= commands


@pytest.fixture(scope="module")
def guides():
    """Return the script that runs the Python of guides."""
    spec = importlib.util.spec_from_file_location("run_guides", ROOT / "tools" / "run_guides.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "path",
    [README, *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_python_in_the_documentation_runs_and_prints_what_it_shows(
    path, guides, tmp_path, monkeypatch
):
    """To put what it prints now into the guides: python tools/run_guides.py."""
    monkeypatch.chdir(tmp_path)
    text = path.read_text()
    assert guides.run(text, str(path)) == text


def test_readme_has_one_install_line_for_the_wheel_test():
    lines = re.findall(r"^pip install '(.*)'$", README.read_text(), re.MULTILINE)
    assert lines == [".[cli,plot]"]
    assert "README_INSTALLS" in (ROOT / "Makefile").read_text()


def test_install_lines_name_a_checkout_since_no_package_is_published():
    folders = [ROOT / name for name in ("src", "docs", "examples", "benchmarks")]
    texts = [
        path for folder in folders for path in folder.rglob("*") if path.suffix in (".md", ".py")
    ]
    installs = re.compile(r"pip install(?: -\S+)* ['\"]?hardwood")
    assert installs.search("pip install --upgrade hardwood")
    for path in [README, ROOT / "CONTRIBUTING.md", *texts]:
        assert not installs.search(path.read_text()), path


def test_the_guide_has_every_parameter_with_its_default():
    from hardwood import DGTClassifier, DGTRegressor
    from hardwood.learn import Training

    guide = (ROOT / "docs" / "guide" / "estimators.md").read_text()
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.*?) \|", guide, re.MULTILINE)
    told = {name.strip("`"): default for names, default in rows for name in names.split(", ")}
    for thing in (DGTClassifier, DGTRegressor, Training):
        for name, parameter in inspect.signature(thing).parameters.items():
            told_defaults = [ast.literal_eval(d.strip("`")) for d in told[name].split(", ")]
            assert parameter.default in told_defaults, name


def test_the_guide_has_every_option_of_every_command():
    from hardwood.cli.app import app
    from hardwood.cli.methods.names import METHODS
    from hardwood.cli.methods.options import options_of

    guide = (ROOT / "docs" / "guide" / "command-line.md").read_text()
    groups = [group.typer_instance for group in app.registered_groups]
    for command in [c for group in (app, *groups) for c in group.registered_commands]:
        for name in inspect.signature(command.callback).parameters:
            option = "json" if name == "as_json" else name.replace("_", "-")
            is_there = f"--{option}" in guide or option.upper() in guide
            assert is_there or name == "context", (command, option)
    for method in METHODS:
        for option in options_of(method).values():
            assert f"`{option.flag}" in guide, (method, option.flag)


def without_code(text):
    """A page without its blocks of code, in which `layers[0](x)` is no link."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def test_links_between_documents_lead_somewhere():
    broken = [
        f"{path.relative_to(ROOT)}: {link}"
        for path in [README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", without_code(path.read_text()))
        if "://" not in link and not (path.parent / link).exists()
    ]
    assert broken == []
