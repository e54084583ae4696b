"""The model file: written atomically, and validated when it is read."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import multiprocessing
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as to_safetensors

from ensembles import make_ensemble
from forests import make_forest
from hardwood.bandit.file import KINDS as BANDIT_KINDS
from hardwood.errors import ModelFileError
from hardwood.model import ObliqueForest, ObliqueTree, TreeEnsemble, dumps, load, loads
from hardwood.model.files.arrays import KINDS as MODEL_KINDS
from hardwood.model.files.arrays import concatenate
from hardwood.model.files.container import MAX_HEADER_BYTES
from hardwood.model.files.format import FORMAT, READERS
from trees import make_rows, make_tree


def parts(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return header and data of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined(header: Any, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def with_document(content: bytes, **changes: Any) -> bytes:
    """Return the file with keys of its hardwood header changed; ... removes the key."""
    header, data = parts(content)
    document = json.loads(header["__metadata__"]["hardwood"]) | changes
    document = {key: value for key, value in document.items() if value is not ...}
    header["__metadata__"]["hardwood"] = json.dumps(document)
    return joined(header, data)


def with_arrays(model: ObliqueTree | ObliqueForest | TreeEnsemble, **changes: Any) -> bytes:
    """Return a well-formed file with wrong arrays; ... removes one."""
    header, _ = parts(dumps(model))
    if isinstance(model, ObliqueForest):
        arrays = concatenate(model.trees)
    else:
        names = ["weights", "bias", "children", "values", "counts", "leaf_weights"]
        arrays = {name: getattr(model, name, None) for name in names}
    arrays = {name: array for name, array in (arrays | changes).items() if array is not ...}
    arrays = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    arrays["sha256"] = np.zeros(32, dtype=np.uint8)
    return bytes(to_safetensors(arrays, metadata=header["__metadata__"]))


TREE = make_tree(0, mixed=True)
CONTENT = dumps(TREE)
LINEAR = make_tree(0, mixed=True, linear=True)
FOREST = make_forest(0, sizes=(4, 0, 3), mixed=True, counts=(True, False), linear=(False, True))
FOREST_CONTENT = dumps(FOREST)
SUM = make_forest(0, sizes=(4, 0, 3), counts=(True, False), linear=(False, True), combine="sum")
SUM_CONTENT = dumps(SUM)
SOFT = make_ensemble(0, mixed=True)
SOFT_CONTENT = dumps(SOFT)


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("n_splits", [0, 1, 7])
def test_a_saved_tree_can_be_loaded(
    tmp_path: Path, task: str, counts: bool, linear: bool, n_splits: int
) -> None:
    tree = make_tree(4, task=task, counts=counts, n_splits=n_splits, linear=linear, mixed=True)
    path = tmp_path / "a model.hardwood"
    tree.save(path)
    again = load(str(path))
    assert again == tree
    rows = make_rows(1, tree.schema, 30)
    np.testing.assert_array_equal(again.predict(rows), tree.predict(rows))
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_bytes() == dumps(again)


def test_a_file_can_be_read_with_safetensors(tmp_path: Path) -> None:
    TREE.save(tmp_path / "m")
    with safe_open(tmp_path / "m", framework="numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("weights"), TREE.weights)
        assert json.loads(file.metadata()["hardwood"])["format"] == 1


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("counts", [(True,), (False,), (True, False)])
@pytest.mark.parametrize("linear", [(True,), (False,), (False, True)])
@pytest.mark.parametrize("sizes", [(0,), (0, 0), (3, 0, 5)])
@pytest.mark.parametrize("combine", ["mean", "sum"])
def test_a_saved_forest_can_be_loaded(
    tmp_path: Path,
    combine: str,
    task: str,
    counts: tuple[bool, ...],
    linear: tuple[bool, ...],
    sizes: tuple[int, ...],
) -> None:
    forest = make_forest(
        4, sizes=sizes, task=task, counts=counts, linear=linear, mixed=True, combine=combine
    )
    path = tmp_path / "forest.hardwood"
    forest.save(path)
    again = load(path)
    assert again == forest
    rows = make_rows(1, forest.schema, 10)
    np.testing.assert_array_equal(again.predict(rows), forest.predict(rows))
    assert path.read_bytes() == dumps(again)


@pytest.mark.parametrize(
    ("model", "kind"), [(TREE, "tree"), (LINEAR, "tree"), (SUM, "forest"), (SOFT, "ensemble")]
)
def test_the_header_says_format_and_kind(model: Any, kind: str) -> None:
    head = json.loads(parts(dumps(model))[0]["__metadata__"]["hardwood"])
    assert (head["format"], head["kind"]) == (FORMAT, kind)


def test_every_kind_has_a_reader() -> None:
    assert (
        dict.fromkeys(MODEL_KINDS, "hardwood.load")
        | dict.fromkeys(BANDIT_KINDS, "hardwood.bandit.load")
        == READERS
    )


def test_the_schema_of_a_forest_is_written_once() -> None:
    one, many = (len(dumps(make_forest(0, sizes=(0,) * n, n_features=200))) for n in (1, 50))
    assert many < 2 * one


def test_names_of_any_kind_survive(tmp_path: Path) -> None:
    names = ['a "quoted" name', "line\nbreak", "größe €", "", "\x00", "{}"]
    tree = ObliqueTree.of(np.ones((1, 6)), bias=[0], values=[1, 2], feature_names=names)
    tree.save(tmp_path / "m")
    assert load(tmp_path / "m").feature_names == tuple(names)


# Writing


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_follow_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        TREE.save(tmp_path / "m")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o666 & ~mask


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_replacing_keeps_permissions_and_links(tmp_path: Path) -> None:
    make_tree(1).save(tmp_path / "m")
    (tmp_path / "m").chmod(0o640)
    (tmp_path / "link").symlink_to("m")
    TREE.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "m") == TREE
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o640


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=r"is a directory.*model\.hardwood"):
        TREE.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist. Make it first"):
        TREE.save(tmp_path / "no" / "m")
    with pytest.raises(FileNotFoundError, match="the name is empty"):
        TREE.save("")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_are_neither_written_nor_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="device or pipe"):
        TREE.save(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        load(tmp_path / "pipe")


class Full(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    make_tree(1).save(tmp_path / "m")
    old = (tmp_path / "m").read_bytes()
    if step == "write":
        opened = os.fdopen

        def fdopen(handle: int, mode: str) -> io.BufferedWriter:
            opened(handle, mode).close()
            return io.BufferedWriter(Full(), buffer_size=1)

        monkeypatch.setattr(os, "fdopen", fdopen)
    else:
        monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        TREE.save(tmp_path / "m")
    monkeypatch.undo()
    assert (tmp_path / "m").read_bytes() == old
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="mounting a small disk needs root"
)
def test_a_really_full_disk(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode().strip()}")
    try:
        TREE.save(tmp_path / "m")
        big = make_tree(0, n_splits=2000, n_features=10)
        for name in ("m", "new"):
            with pytest.raises(OSError, match="No space left"):
                big.save(tmp_path / name)
        assert os.listdir(tmp_path) == ["m"]
        assert load(tmp_path / "m") == TREE
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def _save_often(path: Path, seed: int) -> None:
    tree = make_tree(seed, n_splits=200)
    for _ in range(20):
        tree.save(path)


def test_two_writers_never_mix(tmp_path: Path) -> None:
    path = tmp_path / "m"
    both = [make_tree(seed, n_splits=200) for seed in (1, 2)]
    both[0].save(path)
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    writers = [context.Process(target=_save_often, args=(path, seed)) for seed in (1, 2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert load(path) in both
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert load(path) in both
    assert os.listdir(tmp_path) == ["m"]


def test_a_header_too_large_to_load_is_not_written() -> None:
    record = {"notes": "x" * (MAX_HEADER_BYTES // 2)}
    tree = ObliqueTree.of([[1.0]], bias=[0], values=[1, 2], record=record)
    with pytest.raises(ValueError, match="too many for a model file"):
        dumps(tree)


# Reading


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="it is a directory"):
        load(tmp_path)


HEADER, DATA = parts(CONTENT)
PLACE = HEADER["weights"]
NOT_HARDWOOD = bytes(to_safetensors({"weights": np.ones((2, 2))}))


def place(name: str = "weights", **changes: Any) -> bytes:
    """Return the file with the description of one array changed."""
    return joined(HEADER | {name: HEADER[name] | changes}, DATA)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (CONTENT[:5], "cut short: it has only 5 bytes"),
        (CONTENT[:100], "cut short"),
        (CONTENT[:-1], "cut short"),
        (CONTENT + b"x", "something appended"),
        (b"PK\x03\x04" + bytes(100), "does not start as a model file"),
        (b"a,b,c\n1,2,3\n", "does not start as a model file"),
        (joined(b"[1]", b""), "not a hardwood model"),
        (joined(b"{]", b""), "the JSON is broken"),
        (joined(b"\xff\xfe\xff", b""), "not UTF-8"),
        (joined(b"[" * 100_000, b""), "nested too deeply"),
        (joined(b'{"a": NaN}', b""), "holds NaN"),
        (joined(b'{"a": 1, "a": 2}', b""), "key 'a' twice"),
        (joined(b'{"a": ' + b"1" * 5000 + b"}", b""), "header cannot be read"),
        (NOT_HARDWOOD, "no 'hardwood' entry"),
        (joined(HEADER | {"__metadata__": {"hardwood": "{"}}, DATA), "JSON is broken"),
        (joined(HEADER | {"__metadata__": {"hardwood": '"\\ud800"'}}, DATA), "not valid Unicode"),
        (joined(HEADER | {"__metadata__": {"hardwood": "[]"}}, DATA), "has no 'format'"),
        (joined(HEADER | {"extra": PLACE}, DATA), r"unknown arrays \['extra'\]"),
        (joined(HEADER | {"leaf_weights": PLACE}, DATA), "'leaf_weights' has shape .* expected 3"),
        (joined(HEADER | {"n_splits": PLACE}, DATA), r"unknown arrays \['n_splits'\]"),
        (joined({k: v for k, v in HEADER.items() if k != "bias"}, DATA), r"lacks .*\['bias'\]"),
        (with_document(CONTENT, format=2), r"newer hardwood \(format 2.*checkout.*pip install \."),
        (with_document(CONTENT, format=2, kind="grove", schema=...), "newer hardwood"),
        (with_document(CONTENT, link=...), r"lacks the keys \['link'\]"),
        (with_document(CONTENT, combine="mean"), r"unknown keys \['combine'\]"),
        (with_document(CONTENT, format=0), "format must be a positive integer"),
        (with_document(CONTENT, format=True), "format must be a positive integer"),
        (with_document(CONTENT, format="1"), "format must be a positive integer"),
        (with_document(CONTENT, format=...), "has no 'format'"),
        (with_document(CONTENT, kind="forest"), r"lacks the keys \['combine', 'trees'\]"),
        (with_document(CONTENT, kind="ObliqueTree"), "kind must be 'tree' or 'forest' or"),
        (with_document(CONTENT, kind="bandit"), "holds a 'bandit'.*hardwood.bandit.load"),
        (with_document(CONTENT, schema=...), r"lacks the keys \['schema'\]"),
        (with_document(CONTENT, code="import os"), r"unknown keys \['code'\]"),
        (with_document(CONTENT, schema=[]), "schema must be a mapping"),
        (with_document(CONTENT, schema={"named": True, "features": []}), "at least one feature"),
        (with_document(CONTENT, task="ranking"), "task must be"),
        (with_document(CONTENT, task=["classification"]), "task must be"),
        (with_document(CONTENT, task="multilabel"), "classes"),
        (with_document(CONTENT, kind=["tree"]), r"kind must be .*not \['tree'\]"),
        (with_document(CONTENT, classes=["a", "b"]), "3 columns for 2 classes"),
        (with_document(CONTENT, classes=["a", "b", ["c"]]), "a class must be"),
        (with_document(CONTENT, classes="abc"), "classes must be a list"),
        (with_document(CONTENT, classes=None), "needs its classes"),
        (with_document(CONTENT, target_names=["a", "b"]), "expected 1 target name"),
        (with_document(CONTENT, target_names="ab"), "target_names must be a list"),
        (with_document(CONTENT, record=[]), "record must be a dict"),
        (place(dtype="F32"), "has dtype 'F32', expected 'F64'"),
        (place(dtype=["F64"]), "has dtype"),
        (place(shape=[5]), "expected 2 sizes"),
        (place(shape=[-5, -10]), "expected 2 sizes"),
        (place(shape=[5.0, 10.0]), "expected 2 sizes"),
        (place(shape=[True, 1]), "expected 2 sizes"),
        (place(shape=[2**62, 2**62]), "takes .* bytes, but its data_offsets"),
        (place(shape=[2**40, 10], data_offsets=[0, 80 * 2**40]), "starts at byte|should take"),
        (place(data_offsets=[0, 2**63]), "expected two sizes"),
        (place(data_offsets=[at + 8 for at in PLACE["data_offsets"]]), "starts at byte"),
        (place(data_offsets=list(reversed(PLACE["data_offsets"]))), "data_offsets|starts at"),
        (place(shape=[0, 2**62], data_offsets=[0, 0]), "starts at byte|should take|impossible"),
        (joined(HEADER | {"weights": []}, DATA), "not described by"),
        (with_arrays(TREE, weights=np.zeros((5, 3))), "weights must have shape"),
        (with_arrays(TREE, weights=TREE.weights * np.nan), "weights must be finite"),
        (with_arrays(TREE, bias=np.full(5, np.inf)), "bias must be finite"),
        (with_arrays(TREE, children=np.zeros((5, 2), np.int32)), "a cycle"),
        (with_arrays(TREE, children=np.full((5, 2), 99, np.int32)), "must lie between"),
        (with_arrays(TREE, children=np.full((5, 2), -(2**31), np.int32)), "must lie between"),
        (with_arrays(TREE, children=np.full((5, 2), -1, np.int32)), "exactly one parent"),
        (with_arrays(TREE, values=np.full((6, 3), 0.5)), "sum to 1"),
        (with_arrays(TREE, counts=np.full(11, -1.0)), "counts must not be negative"),
        (with_arrays(TREE, counts=np.ones(3)), "counts must have shape"),
    ],
)
def test_the_error_says_what_is_wrong(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        loads(content)
    (tmp_path / "bad.hardwood").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"bad\.hardwood") as caught:
        load(tmp_path / "bad.hardwood")
    assert caught.match(words)


MEMBERS = json.loads(parts(FOREST_CONTENT)[0]["__metadata__"]["hardwood"])["trees"]


def with_member(i: int, **changes: Any) -> bytes:
    """Return the forest's file with entries of one tree's header changed; ... removes the key."""
    members = list(MEMBERS)
    members[i] = {key: value for key, value in (MEMBERS[i] | changes).items() if value is not ...}
    return with_document(FOREST_CONTENT, trees=members)


LINEAR_CONTENT = dumps(LINEAR)
SIZES = np.array([4, 0, 3], np.int32)
CHILDREN = concatenate(FOREST.trees)["children"]
LEAF_WEIGHTS = concatenate(FOREST.trees)["leaf_weights"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (with_document(LINEAR_CONTENT, link=...), r"lacks the keys \['link'\]"),
        (with_document(LINEAR_CONTENT, link="identity"), "must be 'softmax'"),
        (with_document(LINEAR_CONTENT, link=["softmax"]), "must be 'softmax'"),
        (with_document(LINEAR_CONTENT, link=None), "must be 'softmax'"),
        (with_document(LINEAR_CONTENT, task="ranking"), "task must be"),
        (with_document(LINEAR_CONTENT, task=["classification"]), "task must be|unhashable"),
        (with_arrays(LINEAR, leaf_weights=...), "sum to 1"),
        (with_arrays(LINEAR, leaf_weights=np.zeros((6, 3, 2))), "leaf_weights must have shape"),
        (with_arrays(LINEAR, leaf_weights=np.zeros((6, 3))), "expected 3 sizes"),
        (with_arrays(LINEAR, leaf_weights=LINEAR.leaf_weights * np.nan), "must be finite"),
        (with_document(FOREST_CONTENT, kind="tree"), r"unknown keys \['combine', 'trees'\]"),
        (with_document(FOREST_CONTENT, kind="grove"), "kind must be .* not 'grove'"),
        (with_document(FOREST_CONTENT, link="softmax"), "link and classes are for combine='sum'"),
        (with_document(FOREST_CONTENT, link=None), "link and classes are for combine='sum'"),
        (with_document(FOREST_CONTENT, combine="median"), "combine must be"),
        (with_document(FOREST_CONTENT, combine=...), r"lacks the keys \['combine'\]"),
        (with_document(FOREST_CONTENT, task="regression", classes=None), "target name"),
        (with_document(FOREST_CONTENT, classes=["a", "b"]), "tree 0: values has 3 columns"),
        (with_document(FOREST_CONTENT, record=3), "record must be a dict"),
        (with_document(FOREST_CONTENT, trees=None), "at least one tree"),
        (with_document(FOREST_CONTENT, trees=[]), "at least one tree"),
        (with_document(FOREST_CONTENT, trees=MEMBERS[:2]), "n_splits has 3 entries for 2 trees"),
        (with_document(FOREST_CONTENT, trees=[*MEMBERS, []]), "tree 3 is described by"),
        (with_document(FOREST_CONTENT, trees=[{}] * 200_000), "200000 trees, more than 100000"),
        (with_member(1, link=...), r"tree 1 lacks the keys \['link'\]"),
        (with_member(1, code="import os"), r"tree 1 .*unknown keys \['code'\]"),
        (with_member(1, link="exp"), "tree 1: the link"),
        (with_member(1, link={}), "tree 1: the link"),
        (with_member(1, record="x"), "tree 1: record must be a dict"),
        (with_member(1, counts=1), "counts of a tree must be true or false"),
        (with_member(1, counts=True), "the trees have 17 rows of counts, but there are 16"),
        (with_member(0, leaf_weights=True), "the trees have 6 rows of leaf_weights"),
        (with_member(1, leaf_weights=False), "has an array leaf_weights, but no tree"),
        (with_arrays(FOREST, n_splits=SIZES + 1), "the trees have 10 rows of weights"),
        (with_arrays(FOREST, n_splits=SIZES - 1), "n_splits must not be negative"),
        (with_arrays(FOREST, n_splits=SIZES[:2]), "n_splits has 2 entries for 3 trees"),
        (with_arrays(FOREST, n_splits=SIZES[::-1].copy()), "tree 0: "),
        (with_arrays(FOREST, n_splits=np.array([2**31 - 1] * 3, np.int32)), "6442450941 rows"),
        (with_arrays(FOREST, n_splits=SIZES.astype(np.int64)), "has dtype 'I64'"),
        (with_arrays(FOREST, n_splits=SIZES[:, None]), "expected 1 size"),
        (with_arrays(FOREST, n_splits=...), r"lacks the arrays \['n_splits'\]"),
        (with_arrays(FOREST, counts=...), "no array counts, but a tree has counts"),
        (
            with_arrays(FOREST, leaf_weights=LEAF_WEIGHTS[:0]),
            "of leaf_weights, but there are 0",
        ),
        (with_arrays(FOREST, children=CHILDREN * 0), "tree 0: .* a cycle"),
        (with_arrays(FOREST, children=CHILDREN + 1), "tree 0: children must lie between"),
        (with_arrays(FOREST, values=np.full((10, 3), 0.5)), "tree 0: .* sum to 1"),
        (with_arrays(FOREST, values=np.full((10, 2), 0.5)), "tree 0: values has 2 columns"),
        (with_arrays(FOREST, weights=np.zeros((7, 3))), "tree 0: weights must have shape"),
    ],
)
def test_the_error_says_what_is_wrong_in_a_forest(content: bytes, words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        loads(content)
    assert len(str(caught.value)) < 1500


LARGE = np.full((3, 8, 3), 1e308)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (with_document(SUM_CONTENT, link=...), r"lacks the keys \['link'\]"),
        (with_document(SUM_CONTENT, combine="mean"), "tree 0: "),
        (with_document(FOREST_CONTENT, combine="sum"), "tree 1: the link of a regression tree"),
        (with_document(SUM_CONTENT, link="exp"), "has no classes"),
        (with_document(SUM_CONTENT, link="exp", classes=None), "expected 3 target name"),
        (with_document(SUM_CONTENT, link=3), "link of a sum must be"),
        (with_document(SUM_CONTENT, link=["softmax"]), "link of a sum must be"),
        (
            with_document(SUM_CONTENT, task="regression"),
            "'softmax' is for classification, but task",
        ),
        (with_document(SUM_CONTENT, task=3), "'softmax' is for classification, but task is 3"),
        (with_document(SUM_CONTENT, task=["classification"]), "is for classification"),
        (with_document(SUM_CONTENT, classes=["a", "b"]), "3 columns for 2 classes"),
        (with_document(SUM_CONTENT, target_names=["a", "b"]), "expected 1 target name"),
        (with_document(SUM_CONTENT, kind="tree"), r"unknown keys \['combine', 'trees'\]"),
        (with_arrays(SUM, values=concatenate(SUM.trees)["values"] + 1.7e308), "maximum of float64"),
        (with_arrays(SUM, n_splits=np.array([2**31 - 1] * 3, np.int32)), "6442450941 rows"),
        (
            with_document(SOFT_CONTENT, kind="forest"),
            r"lacks the keys \['combine', 'trees'\]",
        ),
        (with_document(SOFT_CONTENT, gamma=...), r"lacks the keys \['gamma'\]"),
        (with_document(SOFT_CONTENT, gamma=0), "gamma must be finite and above 0"),
        (with_document(SOFT_CONTENT, gamma=-1.5), "gamma must be finite and above 0"),
        (with_document(SOFT_CONTENT, gamma=True), "gamma must be a number"),
        (with_document(SOFT_CONTENT, gamma="1"), "gamma must be a number"),
        (with_document(SOFT_CONTENT, gamma=None), "gamma must be a number"),
        (with_document(SOFT_CONTENT, gamma=[1.0]), "gamma must be a number"),
        (with_document(SOFT_CONTENT, gamma=10**4000), "gamma must be a float64|cannot be read"),
        (with_document(SOFT_CONTENT, gamma=1e-30), "too steep to be soft"),
        (with_document(SOFT_CONTENT, activation="relu"), "activation must be one of"),
        (with_document(SOFT_CONTENT, activation={}), "activation must be one of"),
        (with_document(SOFT_CONTENT, link="identity"), "classification ensemble must be 'softmax'"),
        (with_document(SOFT_CONTENT, link=None), "link of an ensemble must not be null"),
        (with_document(SOFT_CONTENT, link=["softmax"]), "ensemble must be 'softmax'"),
        (with_document(SOFT_CONTENT, task="ranking"), "task must be"),
        (with_document(SOFT_CONTENT, task=["classification"]), "task must be"),
        (with_document(SOFT_CONTENT, classes=None), "needs its classes"),
        (with_document(SOFT_CONTENT, classes=["a", "b"]), "3 columns for 2 classes"),
        (with_document(SOFT_CONTENT, classes="abc"), "classes must be a list"),
        (with_document(SOFT_CONTENT, record=3), "record must be a dict"),
        (with_document(SOFT_CONTENT, trees=[]), r"unknown keys \['trees'\]"),
        (with_arrays(SOFT, weights=SOFT.weights[0]), "expected 3 sizes"),
        (with_arrays(SOFT, weights=SOFT.weights[:0]), "needs 1 to 100000 trees, got 0"),
        (with_arrays(SOFT, weights=SOFT.weights[:, :0]), "0 splits do not fill a perfect tree"),
        (with_arrays(SOFT, weights=SOFT.weights[:, :6]), "6 splits do not fill a perfect tree"),
        (with_arrays(SOFT, weights=SOFT.weights[:, :3].copy()), r"bias must have shape \(3, 3\)"),
        (with_arrays(SOFT, weights=SOFT.weights[:, :, 1:].copy()), "weights must have shape"),
        (with_arrays(SOFT, weights=SOFT.weights * np.nan), "weights must be finite"),
        (with_arrays(SOFT, weights=SOFT.weights * 1e20), "too steep to be soft"),
        (with_arrays(SOFT, weights=...), r"lacks the arrays \['weights'\]"),
        (with_arrays(SOFT, bias=SOFT.bias[:2]), "bias must have shape"),
        (with_arrays(SOFT, values=SOFT.values[:, :7].copy()), "values must have shape"),
        (with_arrays(SOFT, values=SOFT.values[:, :, :0].copy()), "at least one column"),
        (with_arrays(SOFT, values=LARGE), "more than the maximum of float64"),
        (with_arrays(SOFT, counts=-SOFT.counts), "counts must not be negative"),
        (with_arrays(SOFT, counts=SOFT.counts[:, :3].copy()), "counts must have shape"),
        (with_arrays(SOFT, counts=SOFT.counts[0]), "expected 2 sizes"),
        (with_arrays(SOFT, children=np.zeros((3, 2), np.int32)), r"unknown arrays \['children'\]"),
    ],
)
def test_the_error_says_what_is_wrong_in_a_sum_or_an_ensemble(content: bytes, words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        loads(content)
    assert len(str(caught.value)) < 1500


def many_trees(n: int) -> bytes:
    """Return a file of n single leaves."""
    header, _ = parts(dumps(make_forest(0, sizes=(0,), k=1, task="regression", counts=(False,))))
    document = json.loads(header["__metadata__"]["hardwood"])
    document["trees"] *= n
    arrays = {
        "n_splits": np.zeros(n, np.int32),
        "weights": np.zeros((0, 4)),
        "bias": np.zeros(0),
        "children": np.zeros((0, 2), np.int32),
        "values": np.zeros((n, 1)),
        "sha256": np.zeros(32, np.uint8),
    }
    content = bytes(to_safetensors(arrays, metadata={"hardwood": json.dumps(document)}))[:-32]
    return content + hashlib.sha256(content).digest()


def test_absurdly_many_trees_are_refused_at_once() -> None:
    assert loads(many_trees(50)).n_trees == 50
    content = many_trees(150_000)
    start = time.process_time()
    with pytest.raises(ModelFileError, match="150000 trees, more than 100000"):
        loads(content)
    assert time.process_time() - start < 5  # many times more if the trees were created
    long_header = joined(b" " * (65 * 2**20), b"")
    with pytest.raises(ModelFileError, match="does not start as a model file"):
        loads(long_header)


@pytest.mark.parametrize("of", ["tree", "linear", "forest", "sum", "ensemble"])
def test_every_flipped_bit_is_detected(of: str) -> None:
    model: Any = make_tree(n_splits=2, n_features=2, linear=of == "linear")
    if of in ("forest", "sum"):
        combine = "sum" if of == "sum" else "mean"
        model = make_forest(sizes=(1, 0), n_features=2, k=2, combine=combine)
    if of == "ensemble":
        model = make_ensemble(n_trees=1, depth=2, n_features=2, k=1, task="regression")
    content = dumps(model)
    for position in range(len(content)):
        spoiled = bytearray(content)
        spoiled[position] ^= 1 << position % 8
        with pytest.raises(ModelFileError):
            loads(bytes(spoiled))


def test_a_declared_size_is_checked(tmp_path: Path) -> None:
    """A gigabyte declared by a small file must not be allocated."""
    import tracemalloc

    shape = [2**27, 1]
    hostile = place(shape=shape, data_offsets=[0, 8 * 2**27])
    long_header = (2**25).to_bytes(8, "little") + b"{}"
    tracemalloc.start()
    try:
        for content in (hostile, long_header):
            with pytest.raises(ModelFileError):
                loads(content)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_loading_executes_and_imports_nothing_unexpected(tmp_path: Path) -> None:
    TREE.save(tmp_path / "m")
    code = (
        "import sys; from hardwood.model import load; load(sys.argv[1]); "
        "print([m for m in ('sklearn', 'torch', 'pickle', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m")],
        capture_output=True,
        text=True,
        check=True,
    )
    found = eval(done.stdout)
    assert set(found) <= {"pickle"}  # imported by NumPy, not used here
