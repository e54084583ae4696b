"""The examples of trees and convolutions run and learn."""

from __future__ import annotations

import importlib.util
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_trees_learn_digits_from_pixels_and_through_convolutions(capsys):
    # Too short to tell which is better; that takes the whole example.
    answers = load("conv_tree_digits").main(["--epochs", "15", "--seeds", "1"])
    assert answers.keys() == {"raw pixels", "convolutions"}
    assert min(answers.values()) > 0.75
    assert capsys.readouterr().out.count("test accuracy") == 2


def test_an_ensemble_learns_digits_through_convolutions_and_becomes_sparse(capsys):
    accuracy, leaves = load("conv_tree_ensemble_digits").main(["--epochs", "5"])
    assert accuracy > 0.9
    assert leaves < 16  # of the 32 at the start
    assert capsys.readouterr().out.count("leaves reached") == 2


def test_a_tree_of_small_networks_learns_digits(capsys):
    found = load("reinforced_tree_digits").main(["--epochs", "20"])
    assert found.keys() == {"greedy", "most_probable"}
    assert min(found.values()) > 0.8
    assert capsys.readouterr().out.count("test accuracy") == 2
