from __future__ import annotations

import json
import re
import webbrowser

import numpy as np
import pytest

from forests import make_forest
from hardwood.model import TreeEnsemble
from hardwood.table import Schema
from pages import content_in, unpacked


def content_of(path):
    return content_in(path.read_text(encoding="utf-8"))


def test_a_page_is_written_beside_the_model(run, classifier_file, tmp_path):
    result = run("show", classifier_file)
    assert result.exit_code == 0
    page = tmp_path / "yes_tree.html"
    assert re.fullmatch(rf"Wrote {page}: \d+ kB, no rows\n", result.output)
    assert content_of(page)["rows"] is None
    assert content_of(page)["title"] == "answer: an oblique tree"


def test_the_rows_of_a_table_fill_the_histograms(run, classifier_file, answers_csv):
    result = run(
        "show",
        classifier_file,
        "--data",
        answers_csv,
        "-o",
        "t.html",
        "--json",
        "--title",
        "My tree",
    )
    said = json.loads(result.stdout)
    assert (said["output"], said["n_rows"], said["colored_by_truth"]) == ("t.html", 5, True)
    content = content_of(answers_csv.with_name("t.html"))
    assert said["bytes"] == answers_csv.with_name("t.html").stat().st_size
    assert content["title"] == "My tree"
    assert content["colors"]["areTrue"]
    truth = unpacked(content["rows"]["truth"])  # what the model predicts is in the table
    assert truth.tolist() == [1, 0, 1, 1, 1]


def test_without_a_target_the_model_gives_the_colors(run, regressor_file, tmp_path):
    (tmp_path / "numbers.csv").write_text("a,b,y\n1,2,3\n-1,2,4\n0.5,1,5\n")
    result = run("show", regressor_file, "--data", "numbers.csv", "-o", "r.html")
    assert "histograms of 3 rows, colored by prediction" in result.output
    assert not content_of(tmp_path / "r.html")["colors"]["areTrue"]
    result = run("show", regressor_file, "--data", "numbers.csv", "--target", "y", "-o", "r.html")
    assert "colored by target" in result.output
    assert content_of(tmp_path / "r.html")["rows"]["truth"] == [3.0, 4.0, 5.0]


def test_rows_without_a_known_class_are_left_out_and_counted(run, classifier_file, tmp_path):
    (tmp_path / "t.csv").write_text(
        "width,color,unused,answer\n1,red,0,yes\n1,red,0,maybe\n2,blue,0,\n3,blue,0,no\n"
    )
    result = run("show", classifier_file, "--data", "t.csv", "--json")
    assert "left out: 2 rows of t.csv without a known class in 'answer'" in result.stderr
    assert json.loads(result.stdout)["n_rows"] == 2


def test_the_number_of_rows_to_choose_from_is_an_option(
    run, classifier_file, answers_csv, tmp_path
):
    run("show", classifier_file, "--data", answers_csv, "--rows", 2, "-o", "t.html")
    content = content_of(tmp_path / "t.html")
    assert (content["rows"]["counted"], unpacked(content["rows"]["number"]).size) == (5, 2)


def test_forests_and_soft_ensembles_have_pages(run, tmp_path):
    make_forest(1).save(tmp_path / "f.hardwood")
    assert run("show", "f.hardwood").exit_code == 0
    assert len(content_of(tmp_path / "f_tree.html")["trees"]) == 3
    soft = TreeEnsemble(
        np.ones((2, 1, 2)),
        np.zeros((2, 1)),
        np.arange(4.0).reshape(2, 2, 1),
        gamma=1.0,
        schema=Schema.numeric(2),
        task="regression",
        link="identity",
    )
    soft.save(tmp_path / "s.hardwood")
    result = run("show", "s.hardwood")
    assert "a page uses the forest of its hardened trees" in result.stderr
    assert content_of(tmp_path / "s_tree.html")["combine"] == "sum"


@pytest.mark.parametrize("starts", [True, False])
def test_the_page_is_opened_on_request(run, classifier_file, tmp_path, monkeypatch, starts):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or starts)
    result = run("show", classifier_file, "-o", "t.html", "--open")
    assert opened == [(tmp_path / "t.html").as_uri()]
    assert ("could not start a browser" in result.stderr) is not starts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "answer"], "give --data, too"),
        (["-o", "tree.png"], "must end in .html"),
        (["-o", "no/where.html"], "does not exist"),
        (["-o", "yes.hardwood"], "is an input of this command"),
        (["--data", "absent.csv"], "absent.csv does not exist"),
        (["--data", "answers.csv", "--target", "color"], "has a class of"),
        (["--data", "answers.csv", "--target", "widht"], "Did you mean 'width'?"),
    ],
)
def test_errors_are_explained(run, classifier_file, answers_csv, tmp_path, arguments, message):
    result = run("show", "yes.hardwood", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.glob("*.html")) == []
