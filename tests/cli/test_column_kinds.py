"""A file of a few rows may look like another kind of table: the model knows its columns."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hardwood.cli.read import read_table
from hardwood.errors import TableWarning
from hardwood.model import ObliqueTree
from hardwood.table import Feature, Schema

LOOKS = {
    "integers": ["9", "10"],
    "codes": ["02139", "10001"],
    "decimals": ["1.50", "2.5"],
    "dates": ["2024-01-01", "2024-02-01"],
    "moments": ["2024-01-01T10:00:00Z", "2024-02-01T10:00:00Z"],
    "times": ["10:30", "11:00"],
    "booleans": ["true", "false"],
    "hexadecimal": ["0x10", "0x1F"],
    "text": ["u", "v"],
}

# Every command that reads a table for a model.
COMMANDS = {
    "predict": ["predict", "m.hardwood", "t.csv", "--keep", "x", "-o", "p.csv"],
    "evaluate": ["evaluate", "m.hardwood", "t.csv", "-t", "y"],
    "analyze": ["analyze", "m.hardwood", "t.csv", "-t", "y"],
    "report": ["report", "m.hardwood", "t.csv", "-t", "y"],
    "show": ["show", "m.hardwood", "--data", "t.csv"],
    "show with targets": ["show", "m.hardwood", "--data", "t.csv", "-t", "y"],
    "export": ["export", "m.hardwood", "--to", "python", "--data", "t.csv", "-o", "m.py"],
    "prune": ["prune", "m.hardwood", "t.csv"],
    "prune with targets": ["prune", "m.hardwood", "t.csv", "-t", "y", "--alpha", "0"],
}


def write_csv(path, columns, *, delimiter=","):
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    path.write_text("".join(delimiter.join(row) + "\n" for row in rows))


def text_model(entries, *, named=True) -> ObliqueTree:
    """Predict the class with the name of the level."""
    levels = (*sorted(entries), "zzz")
    return ObliqueTree.of(
        [[1.0, 0.0, 0.0]],
        thresholds=[0.5],
        values=[[0.1, 0.9, 0.0], [0.9, 0.1, 0.0]],
        schema=Schema((Feature("x", "categorical", levels=levels),), named=named),
        classes=list(levels),
        target_names="y",
    )


def number_model(origin) -> ObliqueTree:
    center = 1.7e9 if origin == "date" else 0.5
    scale = 2.0**22 if origin == "date" else 0.5
    feature = Feature("x", "numeric", center=center, scale=scale, origin=origin)
    return ObliqueTree.of(
        [[1.0]],
        thresholds=[center],
        values=[-1.0, 1.0],
        schema=Schema((feature,)),
        target_names="y",
    )


def each_by_predict_and_some_by_all(cases, some):
    """Every case with one command, and some with every command: what reads a file is the same."""
    return [("predict", case) for case in cases] + [
        (command, case) for command in COMMANDS for case in some if command != "predict"
    ]


@pytest.mark.parametrize(
    ("command", "look"), each_by_predict_and_some_by_all(LOOKS, ["codes", "booleans", "dates"])
)
def test_text_stays_text_whatever_it_looks_like(run, tmp_path, look, command):
    text_model(LOOKS[look]).save(tmp_path / "m.hardwood")
    entries = LOOKS[look] * 10
    write_csv(tmp_path / "t.csv", {"x": entries, "y": entries})
    result = run(*COMMANDS[command], "--json")
    assert result.exit_code == 0, result.stderr
    said = json.loads(result.stdout)
    assert "levels that" not in result.stderr
    assert "left out" not in result.stderr
    if command == "predict":
        written = (tmp_path / "p.csv").read_text().replace('"', "")
        assert written.splitlines()[1:] == [f"{entry},{entry}" for entry in entries]
    if command == "evaluate":
        assert said["metrics"]["accuracy"]["value"] == 1.0
        assert said["n_unknown_class"] == 0


@pytest.mark.parametrize("look", LOOKS)
def test_a_model_of_an_array_knows_its_columns_by_position(run, tmp_path, look):
    text_model(LOOKS[look], named=False).save(tmp_path / "m.hardwood")
    write_csv(tmp_path / "t.csv", {"anything": LOOKS[look]})
    result = run("predict", "m.hardwood", "t.csv")
    assert result.stdout.replace('"', "").split() == ["prediction", *LOOKS[look]]


def test_leading_zeros_of_a_kept_column_survive_without_a_note(run, tmp_path):
    text_model(["u", "v"]).save(tmp_path / "m.hardwood")
    write_csv(tmp_path / "t.csv", {"x": ["u", "v"], "account": ["0071", "0072"]})
    result = run("predict", "m.hardwood", "t.csv", "--keep", "account", "--strict")
    assert result.stdout.replace('"', "").split() == ["account,prediction", "0071,u", "0072,v"]
    assert result.stderr == ""


# What a column of numbers, booleans or dates may hold: it is right, noted, or refused.
OUTCOMES = {
    "number": {
        "right": ["integers", "codes", "decimals", "hexadecimal", "booleans"],
        "noted": ["dates", "moments", "times"],
        "refused": ["text"],
    },
    "boolean": {
        "right": ["booleans"],
        "noted": ["integers", "codes", "decimals", "hexadecimal", "dates", "moments", "times"],
        "refused": ["text"],
    },
    "date": {
        "right": ["dates", "moments"],
        "noted": ["integers", "codes", "decimals", "hexadecimal", "booleans", "times"],
        "refused": ["text"],
    },
}
CASES = [
    (origin, look, outcome)
    for origin, outcomes in OUTCOMES.items()
    for outcome, looks in outcomes.items()
    for look in looks
]
SOME_CASES = [
    ("number", "codes", "right"),
    ("boolean", "integers", "noted"),
    ("date", "integers", "noted"),
    ("date", "text", "refused"),
]


@pytest.mark.parametrize(
    ("command", "case"), each_by_predict_and_some_by_all(CASES, SOME_CASES), ids=str
)
def test_numbers_booleans_and_dates_are_right_noted_or_refused(run, tmp_path, command, case):
    origin, look, outcome = case
    number_model(origin).save(tmp_path / "m.hardwood")
    write_csv(tmp_path / "t.csv", {"x": LOOKS[look] * 10, "y": ["1", "-1"] * 10})
    result = run(*COMMANDS[command])
    assert result.exit_code == (2 if outcome == "refused" else 0), result.stderr
    if outcome == "refused":
        assert "column 'x' holds the text 'u' at row 0" in result.stderr
    else:
        assert ("column 'x' holds" in result.stderr) is (outcome == "noted")


def test_every_kind_has_every_look():
    for outcomes in OUTCOMES.values():
        assert sorted(sum(outcomes.values(), [])) == sorted(LOOKS)


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_levels_are_noted_once_and_strict_refuses_them(run, tmp_path, command):
    text_model(["u", "v"]).save(tmp_path / "m.hardwood")
    write_csv(tmp_path / "t.csv", {"x": ["u", "v", "new"] * 10, "y": ["u", "v", "v"] * 10})
    before = set(tmp_path.iterdir())
    refused = run(*COMMANDS[command], "--strict")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: --strict: levels that the model did not learn")
    assert set(tmp_path.iterdir()) == before
    noted = run(*COMMANDS[command])
    assert noted.exit_code == 0
    assert noted.stderr.count("column 'x' in 10 of 30 rows ('new')") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_strict_accepts_what_the_model_learned(run, tmp_path, command):
    text_model(["u", "v"]).save(tmp_path / "m.hardwood")
    write_csv(tmp_path / "t.csv", {"x": ["u", "v", ""] * 10, "y": ["u", "v", "v"] * 10})
    result = run(*COMMANDS[command], "--strict")
    assert result.exit_code == 0, result.stderr
    assert "levels that" not in result.stderr


def test_predictions_beyond_float64_are_a_note(run, tmp_path):
    tree = ObliqueTree.of(
        [[1.0]], thresholds=[0.0], values=[0.0, 0.0], leaf_weights=[[0.0], [1.0]], link="exp"
    )
    tree.save(tmp_path / "m.hardwood")
    write_csv(tmp_path / "t.csv", {"x0": ["-1", "1", "800"]})
    done = run("predict", "m.hardwood", "t.csv", "--json")
    assert done.exit_code == 0
    (note,) = json.loads(done.stdout)["notes"]
    assert note.startswith("1 prediction is beyond float64, such as inf for row 2 of 3, because")
    assert run("predict", "m.hardwood", "t.csv", "--strict").exit_code == 2


# Tables without a model

RARE = "x,k,y\n" + "".join(
    f"{i},{'abcdefghijklmnopqrst'[i % 20]}{i // 30},{i % 2}\n" for i in range(60)
)


@pytest.mark.parametrize("method", ["greedy", "tree"])
def test_levels_of_held_out_rows_alone_are_a_note(run, tmp_path, method):
    (tmp_path / "t.csv").write_text(RARE)
    options = ["--max-trials", "1", "--time-limit", "none"] if method == "tree" else []
    result = run("fit", "t.csv", "-t", "y", "--method", method, *options)
    assert result.exit_code == 0
    assert "note: levels that the model did not learn" in result.stderr


def test_a_comparison_says_nothing_about_levels_of_few_folds(run, tmp_path):
    (tmp_path / "t.csv").write_text(RARE)
    result = run("compare", "t.csv", "-t", "y", "--model", "CART", "--model", "constant")
    assert result.exit_code == 0
    assert "levels that" not in result.stderr


def test_an_identifier_that_is_nearly_numbers_is_called_that(run, tmp_path):
    rows = "".join(f"{i},{i / 7 if i else '?'},{i % 2}\n" for i in range(60))
    (tmp_path / "t.csv").write_text("a,x,y\n" + rows)
    result = run("fit", "t.csv", "-t", "y", "--method", "greedy")
    assert "'x' has a different text in every row (numbers, but for '?')" in result.stderr


def test_leading_zeros_make_a_column_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('zip,n,hex,neg,z\n02139,1,0x1F,-05,0\n10001,2,0x20,3,\n"00501",,1,4,0\n')
    with pytest.warns(TableWarning) as caught:
        table = read_table(path)
    assert table.to_pydict() == {
        "zip": ["02139", "10001", "00501"],
        "n": [1, 2, None],
        "hex": ["0x1F", "0x20", "1"],
        "neg": [-5, 3, 4],
        "z": [0, None, 0],
    }
    assert [str(warning.message) for warning in caught] == [
        "'zip' is read as text, because it has integers with leading zeros such as 02139",
        "'hex' is read as text, because it has integers with leading zeros such as 0x1F",
    ]


def test_leading_zeros_survive_between_semicolons_and_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("zip;size;n\n02139;1,5;1\n10001;2;2\n")
    with pytest.warns(TableWarning, match="'zip'"):
        assert read_table(path).to_pydict() == {
            "zip": ["02139", "10001"],
            "size": [1.5, 2.0],
            "n": [1, 2],
        }


def test_leading_zeros_of_a_number_to_predict_are_ignored(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n01,1\n02,2\n")
    assert read_table(path, target="a", task="regression")["a"].to_pylist() == [1, 2]


def test_text_with_commas_does_not_change_the_decimal_point(tmp_path):
    """A column of text may hold only entries such as 9,5 between semicolons."""
    write_csv(tmp_path / "t.csv", {"x": ["9,5", "10"], "n": ["1.5", "2.5"]}, delimiter=";")
    model = text_model(["9,5", "10"])
    assert read_table(tmp_path / "t.csv", model=model).to_pydict() == {
        "x": ["9,5", "10"],
        "n": [1.5, 2.5],
    }


@pytest.mark.parametrize(
    "column",
    [
        pa.array([9, 10, None]),
        pa.array([9.0, 10.0, None]),
        pa.array([9, 10, None], pa.int8()).dictionary_encode(),
        pa.array(["9", "10", None]),
    ],
)
def test_parquet_has_types_and_levels_are_compared(run, tmp_path, column):
    text_model(["9", "10"]).save(tmp_path / "m.hardwood")
    parquet.write_table(pa.table({"x": column}), tmp_path / "t.parquet")
    result = run("predict", "m.hardwood", "t.parquet")
    assert result.stdout.replace('"', "").split()[:3] == ["prediction", "9", "10"]


@pytest.mark.parametrize("command", ["evaluate", "show with targets", "prune with targets"])
@pytest.mark.parametrize(
    ("classes", "entries"),
    [
        ([1, 2], ["1", "2"]),
        ([1, 2], ["1", "2", "other"]),
        (["1", "2"], ["1", "2"]),
        ([1.0, 2.0], ["1", "2", "other"]),
        ([False, True], ["FALSE", "TRUE", "other"]),
        ([False, True], ["0", "1"]),
        (["false", "true", "other"], ["false", "true"]),
        (["01", "02"], ["01", "02"]),
    ],
)
def test_labels_have_the_type_of_the_classes(run, tmp_path, classes, entries, command):
    values = np.eye(len(classes))[:2]
    tree = ObliqueTree.of(
        [[1.0]], thresholds=[0.5], values=values, feature_names=["x"], classes=classes
    )
    tree.save(tmp_path / "m.hardwood")
    places = [str(i) for i in range(len(entries))]
    write_csv(tmp_path / "t.csv", {"x": places * 10, "y": entries * 10})
    result = run(*COMMANDS[command], "--json")
    assert result.exit_code == 0, result.stderr
    if command == "evaluate":
        said = json.loads(result.stdout)
        assert said["n_unknown_class"] == 10 * (len(entries) - 2)
        assert said["metrics"]["accuracy"]["value"] == 2 / len(entries)
