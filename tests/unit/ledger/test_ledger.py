"""The ledger finds what differs, and nothing where nothing does."""

from __future__ import annotations

import numpy as np
import pytest

import hardwood
from ledger import book, fits
from ledger.__main__ import all_cases, main
from ledger.cases import Case, chosen, parts_of
from ledger.values import as_bytes


def a_fit(**settings):
    X = np.random.default_rng(0).normal(size=(60, 2))
    tree = hardwood.GreedyTreeClassifier(max_depth=2, **settings).fit(X, X[:, 0] > X[:, 1])
    return {"model": fits.model_bytes(tree), "attributes": tree}


@pytest.fixture
def recorded(tmp_path):
    """Two cases, recorded with their contents."""
    cases = [Case("fit/one", a_fit), Case("text/two", lambda: {"text": "first\nsecond\nthird"})]
    book.record(cases, tmp_path / "book.json", keep=tmp_path / "kept")
    return cases, tmp_path


def test_what_did_not_change_is_equal(recorded, capsys):
    cases, folder = recorded
    assert book.compare(cases, folder / "book.json", keep=folder / "kept") == 0
    assert "2 of 2 cases are equal" in capsys.readouterr().out


def test_what_changed_is_named_and_shown(recorded, capsys):
    cases, folder = recorded
    changed = [
        Case("fit/one", lambda: a_fit(criterion="gini")),
        Case("text/two", lambda: {"text": "first\nanother\nthird", "more": "new part"}),
    ]
    assert book.compare(changed, folder / "book.json", keep=folder / "kept") == 1
    told = capsys.readouterr().out
    assert "differs: fit/one/attributes" in told
    assert "differs: text/two/text\n" in told
    assert "    -second\n    +another\n" in told
    assert "new: text/two/more: new part" in told
    assert "0 of 2 cases are equal" in told


def test_cases_that_come_and_go_are_told(recorded, capsys):
    cases, folder = recorded
    assert book.compare([cases[0], Case("fit/new", a_fit)], folder / "book.json") == 1
    told = capsys.readouterr().out
    assert "not recorded: fit/new" in told
    assert "recorded, but no longer a case: text/two" in told
    assert book.compare(cases[:1], folder / "book.json", is_all=False) == 0


def test_what_is_printed_warned_of_and_raised_is_recorded():
    def speak():
        print("learned in 0.31 s at", object())
        np.array([1.0]) / 0.0
        raise ValueError("no such thing")

    parts = parts_of(Case("any", speak))
    assert parts["printed"] == b"learned in (a time) at <object object at 0x...>\n"
    assert b"RuntimeWarning: divide by zero" in parts["warnings"]
    assert parts["raised"] == b"ValueError: no such thing"


def test_values_are_recorded_to_the_last_bit_and_without_times():
    assert as_bytes({"x": 0.1, "seconds": 3.2}) != as_bytes({"x": np.nextafter(0.1, 1)})
    assert as_bytes({"x": 0.1, "seconds": 3.2}) == as_bytes({"x": 0.1, "seconds": 4.1})
    assert as_bytes(np.array([1.0])) != as_bytes(np.array([1.0], dtype=np.float32))


def test_the_cases_have_names_of_their_own_and_cover_every_estimator(capsys):
    cases = all_cases()
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    quick = chosen(cases, only=None, quick=True)
    for estimator in fits.estimators():
        assert sum(name.startswith(f"fit/{estimator}/") for name in names) >= 6 * 3
        assert any(case.name.startswith(f"fit/{estimator}/") for case in quick)
    assert main(["list", "--only", "fit/DGTClassifier/iris/seed?/default"]) == 0
    assert capsys.readouterr().out.split("\n")[:3] == [
        f"fit/DGTClassifier/iris/seed{seed}/default" for seed in (0, 1, 2)
    ]
