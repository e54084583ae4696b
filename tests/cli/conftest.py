from __future__ import annotations

import pytest
from typer.testing import CliRunner

from hardwood.cli.app import app
from hardwood.model import ObliqueTree
from hardwood.table import Feature, Schema


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command line in an empty folder, and raise unexpected exceptions."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments):
        return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)

    return invoke


@pytest.fixture
def classifier():
    """Predicts 'yes' where width + 2 [color = red] >= 3."""
    schema = Schema(
        (
            Feature("width", "numeric", center=1.0, scale=2.0, has_missing=True),
            Feature("color", "categorical", levels=("blue", "red")),
            Feature("unused", "numeric"),
        )
    )
    return ObliqueTree.of(
        [[1.0, 0.0, 0.0, 2.0, 0.0]],
        thresholds=[3.0],
        values=[[0.9, 0.1], [0.25, 0.75]],
        schema=schema,
        classes=["no", "yes"],
        counts=[10.0, 6.0, 4.0],
        target_names="answer",
        record={"learner": "by hand"},
    )


@pytest.fixture
def regressor():
    """Predicts 1 where a >= 0, otherwise -1."""
    return ObliqueTree.of(
        [[1.0, 0.0]], thresholds=[0.0], values=[-1.0, 1.0], feature_names=["a", "b"]
    )


@pytest.fixture
def classifier_file(classifier, tmp_path):
    path = tmp_path / "yes.hardwood"
    classifier.save(path)
    return path


@pytest.fixture
def regressor_file(regressor, tmp_path):
    path = tmp_path / "sign.hardwood"
    regressor.save(path)
    return path


@pytest.fixture
def answers_csv(tmp_path):
    """Five rows; the classifier is right on all but the last, and width is missing once."""
    path = tmp_path / "answers.csv"
    path.write_text(
        "color,width,unused,answer,number\n"
        "red,1,0,yes,1\n"
        "blue,1,0,no,2\n"
        "blue,3.5,0,yes,3\n"
        "red,,0,yes,4\n"
        "blue,0,0,yes,5\n"
    )
    return path
