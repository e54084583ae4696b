"""The commands that use a model, for latent trees."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood.model import LatentTreeModel
from hardwood.report import analyze, describe
from hardwood.table import Schema


@pytest.fixture
def latent():
    """Mostly a where width is below 0, and mostly 2 where it is above, with a pruned side."""
    return LatentTreeModel(
        [0, 1, 2, 5],
        [1.0, 1.0, 0.5, 0.25],
        [[1.0, 0.0], [0.0, 2.0]],
        [0.0, 1.0],
        [0.0, 1.0, 2.0, 3.0],
        [0.5],
        schema=Schema.numeric(2, ["width", "height"]),
        task="regression",
        target_names="answer",
    )


@pytest.fixture
def latent_file(latent, tmp_path):
    path = tmp_path / "latent.hardwood"
    latent.save(path)
    return path


@pytest.fixture
def rows_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("width,height,answer\n-1,0,1\n0,1,2\n3,-2,2\n")
    return path


def test_it_is_described(run, latent, latent_file):
    result = run("describe", latent_file)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Latent tree: regression, depth 2, active nodes: 4, splits: 2")
    assert "node 0, activity 1: if width >= 0:" in lines
    assert "|   |   stays at node 2" in lines
    assert "|   node 1, activity 1" in lines
    assert "format 1" in result.stdout
    assert describe(latent).to_dict()
    assert "and more below" in latent.to_text(max_depth=1)


def test_it_predicts_and_is_scored(run, latent, latent_file, rows_file):
    result = run("predict", latent_file, rows_file)
    assert result.exit_code == 0, result.stderr
    found = [float(line) for line in result.stdout.split()[1:]]
    rows = np.array([[-1.0, 0.0], [0.0, 1.0], [3.0, -2.0]])
    np.testing.assert_allclose(found, latent.predict(rows))
    assert run("evaluate", latent_file, rows_file, "--target", "answer").exit_code == 0
    assert "width" in str(analyze(latent, rows, [1.0, 2.0, 2.0]))
    assert run("benchmark", latent_file).exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("prune", "rows.csv", "-o", "new.hardwood"),
        ("export", "--to", "c"),
        ("describe", "--plot", "tree.png"),
    ],
    ids=lambda command: command[0],
)
def test_commands_for_hard_trees_say_how_to_make_one(run, latent_file, rows_file, command):
    name, *options = command
    result = run(name, latent_file, *options)
    assert result.exit_code == 2
    assert "got a latent tree" in result.stderr
    assert "harden(X, y)" in result.stderr
