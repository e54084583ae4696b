"""Names: no column name can break an export."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest

from hardwood import ObliqueTree
from hardwood.export import to_c, to_json, to_onnx, to_python, to_rules
from hardwood.export.c.text import double_literal, float_literal, read_tables, string_literal, table
from hardwood.export.names import comment, identifiers, quoted
from hardwood.table import Feature, Schema
from trees import make_rows


def test_identifiers_are_distinct_regardless_of_case():
    names = ["a b", "a-b", "A_B", "", "  ", "1", "é", "日本", "int", "x" * 100]
    found = identifiers(names, taken=["int"])
    assert found[:6] == ["a_b", "a_b_2", "A_B_3", "x3", "x4", "x_1"]
    assert found[6:9] == ["e", "x7", "int_2"]
    assert len(found[9]) == 40
    assert len({name.lower() for name in found}) == len(names)
    assert identifiers(["1", ""], prefix="M_", otherwise="") == ["M_1", "M_1_2"]


def test_a_comment_has_neither_delimiters_nor_lines(hostile):
    for name in hostile.feature_names:
        text = comment(name)
        assert text.isascii()
        assert text.isprintable() or not text
        assert not {"*", "/", "\\", "?", "`"} & {*text}
        assert "--" not in text
        assert len(text) <= 2000


def test_quoted_text_is_one_line_that_json_reads(hostile):
    for name in hostile.feature_names:
        assert json.loads(quoted(name)) == name
        assert len(quoted(name).splitlines()) == 1


@pytest.mark.parametrize("value", [0.1, 1.0, 1e300, 5e-324, -2.5, 1 / 3, 123456789.0, 1e22])
def test_numbers_in_c_read_back_the_same(value):
    assert float(double_literal(value)) == value
    single = np.float32(value) if abs(value) < 1e38 else np.float32(3.4e38)
    assert np.float32(float_literal(single).rstrip("f")) == single
    assert {
        "." in text or "e" in text for text in (double_literal(value), float_literal(single))
    } == {True}


def test_tables_are_read_back_from_their_text(rng):
    floats = rng.normal(size=100).astype(np.float32)
    whole = rng.integers(-100, 100, size=33)
    text = table("float", "a", floats) + table("int8_t", "b", whole) + table("double", "c", floats)
    read = read_tables(text)
    np.testing.assert_array_equal(read["a"], floats)
    np.testing.assert_array_equal(read["b"], whole)
    np.testing.assert_array_equal(read["c"], floats.astype(np.float64))


@pytest.mark.parametrize("export", [to_c, to_onnx, to_python, to_rules, to_json])
def test_hostile_names_change_no_prediction(hostile, export):
    if export is to_onnx:
        pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    content = export(hostile, data=make_rows(1, hostile.schema, 200))
    assert content.check.n_on_edge <= 5
    assert content.check.largest_difference < 1e-12


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc here")
@pytest.mark.parametrize("precision", ["float32", "int16"])
def test_hostile_names_pass_a_strict_compiler_and_are_looked_up(hostile, tmp_path, precision):
    to_c(hostile, tmp_path / "m.h", precision=precision, min_agreement=0)
    names = list(hostile.feature_names)
    feature = names.index("new\nline") - 2  # the category whose levels begin the list
    checks = "".join(
        f"  if (m_level({feature}, {string_literal(level)}) != {code}) return {code + 1};\n"
        for code, level in enumerate(hostile.schema.features[feature].levels)
    )
    classes = "".join(
        f"  {{ static const char text[] = {string_literal(name)};\n"
        f"    if (strcmp(m_class_name({i}), text) != 0) return {i + 50}; }}\n"
        for i, name in enumerate(names)
    )
    (tmp_path / "main.c").write_text(
        f'#include "m.h"\nint main(void) {{\n{checks}{classes}  return 0;\n}}\n'
    )
    for compiler, standard in (("gcc", "-std=c99"), ("g++", "-std=c++11")):
        source = "main.c" if compiler == "gcc" else "main.cpp"
        shutil.copy(tmp_path / "main.c", tmp_path / "main.cpp")
        strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", standard]
        command = [compiler, *strict, source, "-o", "main", "-lm"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        assert subprocess.run([tmp_path / "main"]).returncode == 0


def test_a_level_with_nul_does_not_end_early(tmp_path):
    schema = Schema((Feature("x\0y", "categorical", levels=("a", "a\0b", "a\0c")),))
    tree = ObliqueTree.of([[1.0, -1.0, 2.0]], bias=[0.0], values=[0.0, 1.0], schema=schema)
    for export in (to_c, to_python, to_rules, to_json):
        assert export(tree).check.n_leaves_reached == 2
