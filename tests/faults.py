"""Plant faults, one at a time, and see which fast test catches each.

::

    python tests/faults.py                # all of them
    python tests/faults.py table bandit   # those whose name has one of these words in it

Every fault is a small slip of the kind that people make: a sign, an index that is off by one, a
term that is dropped, a wrong unit; each in another room. Each is planted in a copy of the tree,
where the fast tests of its room run until the first of them fails. docs/design/0009-checks.md has
the answers. Faults in the engine need a compiler, CMake and Ninja, and take a build each.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Fault:
    """A slip.

    Attributes
    ----------
    name
        The room, and what is wrong.
    file, right, wrong
        Where it is planted: text that is there once, and what takes its place.
    tests
        The folders or files of the fast tests that should catch it.
    """

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


PYTHON, NATIVE = "src/hardwood", "native"
FAULTS = (
    Fault(
        "table: the spread forgets the mean",
        f"{PYTHON}/table/statistics.py",
        "        z -= z_mean\n        second_moment += (w * z * z).sum(axis=0)\n    return _stat",
        "        second_moment += (w * z * z).sum(axis=0)\n    return _stat",
        ("tests/unit/table",),
    ),
    Fault(
        "text: a digit too many",
        f"{PYTHON}/text/numbers.py",
        "max(0, digits - 1 - size)",
        "max(0, digits - size)",
        ("tests/unit/text",),
    ),
    Fault(
        "model: depths are off by one",
        f"{PYTHON}/model/paths.py",
        "        depths[below] = depth\n",
        "        depths[below] = depth - 1\n",
        ("tests/unit/model",),
    ),
    Fault(
        "model: the worst prediction is the best",
        f"{PYTHON}/model/cost.py",
        "costs[:2].sum(axis=0).argmax()",
        "costs[:2].sum(axis=0).argmin()",
        ("tests/unit/model",),
    ),
    Fault(
        "model/edit: a split goes with the next price only",
        f"{PYTHON}/model/edit/pruning_path.py",
        "self.strengths <= alpha",
        "self.strengths < alpha",
        ("tests/unit/model/test_prune.py",),
    ),
    Fault(
        "learn: the two classes of a logistic loss are swapped",
        f"{PYTHON}/learn/losses.py",
        "np.hstack([0.5 - half, 0.5 + half])",
        "np.hstack([0.5 + half, 0.5 - half])",
        ("tests/native/test_losses.py", "tests/estimators/test_training.py"),
    ),
    Fault(
        "learn: weights are left in standard units",
        f"{PYTHON}/learn/units.py",
        "weights.astype(np.float64) / schema.column_scale",
        "weights.astype(np.float64) * schema.column_scale",
        ("tests/estimators/test_training.py",),
    ),
    Fault(
        "learn: the rows of the prior are not counted",
        f"{PYTHON}/learn/leaves/constant.py",
        "    total = rows.totals + prior.n_rows\n",
        "    total = rows.totals\n",
        ("tests/unit/learn", "tests/estimators/test_tao.py"),
    ),
    Fault(
        "table: balanced classes all weigh the same",
        f"{PYTHON}/table/weights.py",
        "(present.sum() * np.where(present, totals, 1.0))",
        "present.sum()",
        ("tests/estimators/test_rows_and_weights.py",),
    ),
    Fault(
        "search: weights of rows are forgotten",
        f"{PYTHON}/search/scorer.py",
        "np.average(is_right, weights=weight)",
        "np.average(is_right)",
        ("tests/unit/search",),
    ),
    Fault(
        "selection: folds that overlap count as independent",
        f"{PYTHON}/selection/comparison.py",
        "(1 / k + n_test / n_train)",
        "(1 / k)",
        ("tests/unit/tuning", "tests/unit/selection"),
    ),
    Fault(
        "bandit: the error divides by n",
        f"{PYTHON}/bandit/evaluation.py",
        ".sum()) / (n - 1))",
        ".sum()) / n)",
        ("tests/bandit/test_evaluation.py",),
    ),
    Fault(
        "explain: the base is a sum",
        f"{PYTHON}/explain/shapley.py",
        "base = mean_of_rows(_predictions(found, packed, others, n_jobs))",
        "base = len(others) * mean_of_rows(_predictions(found, packed, others, n_jobs))",
        ("tests/unit/explain/test_shapley.py",),
    ),
    Fault(
        "export: quotes in text are not doubled",
        f"{PYTHON}/export/sql/text.py",
        """.replace("'", "''")""",
        "",
        ("tests/unit/export/test_sql.py",),
    ),
    Fault(
        "export: numbers are rounded down",
        f"{PYTHON}/export/c/quantize.py",
        "np.floor((numbers - self.zero) / self.step + 0.5)",
        "np.floor((numbers - self.zero) / self.step)",
        ("tests/unit/export/test_c_integers.py",),
    ),
    Fault(
        "report: the interval of a share ignores weights",
        f"{PYTHON}/report/calibration.py",
        "wilson(observed, rows**2 / squares)",
        "wilson(observed, rows)",
        ("tests/unit/report/test_calibration.py",),
    ),
    Fault(
        "report: leaves of the right child overlap those of the left",
        f"{PYTHON}/report/purity.py",
        "start[right] = start[left] + width[left]",
        "start[right] = start[left] + width[right]",
        ("tests/unit/report/test_purity.py",),
    ),
    Fault(
        "show: histograms are in raw units",
        f"{PYTHON}/show/page/histograms.py",
        "tree.weights * tree.schema.column_scale",
        "tree.weights",
        ("tests/unit/show/test_page.py",),
    ),
    Fault(
        "nn: the scores are not divided by gamma",
        f"{PYTHON}/nn/tel_op.py",
        "(scores / scores.new_full((), gamma))",
        "(scores)",
        ("tests/nn/test_tel.py",),
    ),
    Fault(
        "table: a class may be missing among the training rows",
        f"{PYTHON}/table/split.py",
        "is_held[first_row[absent]] = False",
        "is_held[first_row[absent]] = True",
        ("tests/unit/table/test_split.py",),
    ),
    Fault(
        "engine: Adam corrects its second moment by the first",
        f"{NATIVE}/core/optimizer.hpp",
        "growth = 1.0f / o.second_correction;",
        "growth = 1.0f / o.first_correction;",
        ("tests/native/test_optimize.py", "tests/native/test_loop.py"),
    ),
    Fault(
        "engine: the quantile loss has the other side's slope",
        f"{NATIVE}/core/loss.hpp",
        "return {r < 0 ? -level * r : (1.0f - level) * r, r < 0   ? -level",
        "return {r < 0 ? -level * r : (1.0f - level) * r, r < 0   ? level",
        ("tests/native/test_losses.py",),
    ),
)


def main(words: Sequence[str]) -> int:
    """Plant the faults whose names have one of the words in them; 1 if one is not caught."""
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        _copy(copy)
        for fault in FAULTS:
            if words and not any(word in fault.name for word in words):
                continue
            caught = planted(fault, copy)
            missed += caught is None
            print(f"{fault.name}: {caught or 'NOT CAUGHT'}", flush=True)
    return 1 if missed else 0


def planted(fault: Fault, copy: Path) -> str | None:
    """Return the test that catches a fault, planted in a copy of the tree."""
    path = copy / fault.file
    text = path.read_text(encoding="utf-8")
    path.write_text(changed(fault, text), encoding="utf-8")
    is_native = fault.file.startswith(NATIVE)
    try:
        if is_native:
            _build(copy)
        return _first_failure(copy, [test for test in fault.tests if (copy / test).exists()])
    finally:
        path.write_text(text, encoding="utf-8")
        if is_native:
            _take_extensions(copy)


def changed(fault: Fault, text: str) -> str:
    """Return a file with the fault in it."""
    if text.count(fault.right) != 1:
        raise ValueError(f"{fault.name}: {fault.right!r} is not once in {fault.file}")
    return text.replace(fault.right, fault.wrong)


def _copy(copy: Path) -> None:
    """Copy what git knows of, as it is on the disk, and the engine that is built."""
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True)
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    _take_extensions(copy)


def _take_extensions(copy: Path) -> None:
    from hardwood import _native

    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for built in Path(_native.__file__).parent.glob(f"*{suffix}"):
        shutil.copy2(built, copy / PYTHON)


def _build(copy: Path) -> None:
    """Compile the engine of the copy; the second build compiles what changed alone."""
    nanobind = [sys.executable, "-m", "nanobind", "--cmake_dir"]
    where = subprocess.check_output(nanobind, text=True).strip()
    tools = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    commands = [
        ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-Dnanobind_DIR={where}"],
        ["cmake", "--build", "build"],
    ]
    commands[0] += [f"-DPython_EXECUTABLE={sys.executable}"]
    if shutil.which("ccache"):
        commands[0] += ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
    for command in commands:
        subprocess.run(command, cwd=copy, env=environment, check=True, stdout=subprocess.DEVNULL)
    for built in (copy / "build").rglob("_*" + sysconfig.get_config_var("EXT_SUFFIX")):
        shutil.copy2(built, copy / PYTHON)


# The copy's package, not the one that is installed: an editable installation has a finder that
# comes before every path.
_PROGRAM = """
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in type(each).__module__]
sys.path.insert(0, {source!r})
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def _first_failure(copy: Path, tests: Sequence[str]) -> str | None:
    program = _PROGRAM.format(source=str(copy / "src"))
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-rfE", *tests]
    done = subprocess.run(
        [sys.executable, "-c", program, *options], cwd=copy, capture_output=True, text=True
    )
    if done.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+(?:\[.*?\])?)", done.stdout, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"the tests did not run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found.group(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
