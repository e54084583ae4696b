"""The promises: the public names, what importing them costs, and what they say about themselves."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hardwood

CHECKED_IN = Path(__file__).with_name("public_names.txt").read_text().split()


MODULES = [
    "hardwood",
    "hardwood.bandit",
    "hardwood.errors",
    "hardwood.explain",
    "hardwood.export",
    "hardwood.learn",
    "hardwood.model",
    "hardwood.model.edit",
    "hardwood.nn",
    "hardwood.report",
    "hardwood.selection",
]


@pytest.mark.parametrize("module", MODULES)
def test_public_names_change_only_on_purpose(module):
    if module == "hardwood.nn":
        pytest.importorskip("torch")
    found = sorted(f"{module}.{name}" for name in importlib.import_module(module).__all__)
    assert found == [name for name in CHECKED_IN if name.rpartition(".")[0] == module]


def test_the_top_level_is_short_enough_to_read():
    assert len(hardwood.__all__) <= 30


@pytest.mark.parametrize("name", [name for name in CHECKED_IN if name.count(".") == 1])
def test_public_names_exist_and_have_a_docstring(name):
    thing = getattr(hardwood, name.removeprefix("hardwood."))
    assert thing.__doc__
    assert thing.__module__.startswith("hardwood.")


LAZY = ["hardwood", "hardwood.bandit", "hardwood.learn"]


@pytest.mark.parametrize("module", LAZY)
def test_names_that_are_imported_when_first_used_are_those_of_the_stub(module):
    package = importlib.import_module(module)
    stub = Path(package.__file__).with_suffix(".pyi").read_text()
    seen = re.findall(r"^from (\S+) import (\w+) as (\w+)$", stub, re.MULTILINE)
    assert stub.count("import ") == len(seen)  # no line that is read otherwise
    assert [name for _, name, _ in seen] == [name for _, _, name in seen]
    assert sorted(name for _, name, _ in seen) == package.__all__
    for home, name, _ in seen:
        assert getattr(package, name) is getattr(importlib.import_module(home), name)
    assert set(package.__all__) <= set(dir(package))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Forest"):
        hardwood.Forest  # noqa: B018  (the access is the test)


def modules_after(statement):
    program = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return {module.split(".")[0] for module in done.stdout.split()}


def test_importing_the_package_imports_nothing_heavy():
    heavy = {"numpy", "scipy", "sklearn", "torch", "matplotlib", "pandas", "polars", "pyarrow"}
    assert not modules_after("import hardwood") & heavy


def test_loading_a_model_needs_neither_scikit_learn_nor_torch(tmp_path):
    path = tmp_path / "m.hardwood"
    hardwood.ObliqueTree.of([[1.0]], thresholds=[0.5], values=[1.0, 2.0]).save(path)
    use = (
        "import numpy as np, hardwood; "
        f"assert hardwood.load({str(path)!r}).predict(np.ones((1, 1))) == [2.0]"
    )
    heavy = {"sklearn", "torch", "matplotlib", "pandas", "polars", "pyarrow"}
    assert not modules_after(use) & heavy


def test_learning_does_not_import_torch():
    use = (
        "import numpy as np, hardwood; X = np.arange(20.0)[:, None]; "
        "hardwood.DGTClassifier(max_depth=1, max_epochs=1).fit(X, X[:, 0] > 9)"
    )
    assert not modules_after(use) & {"torch", "matplotlib"}
