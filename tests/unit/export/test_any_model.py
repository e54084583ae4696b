"""Random models of all kinds, in every format: the export predicts what the library predicts."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forests import forests
from hardwood.export import to_c, to_onnx, to_python, to_rules, to_sql
from hardwood.export.c.compiler import Compiler
from trees import trees

# The fixture that every test has (one generator) is not asked for here.
some = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@some
@given(model=st.one_of(trees(), forests()))
@pytest.mark.parametrize("export", [to_c, to_onnx, to_python, to_rules, to_sql])
def test_every_format(export, model):
    if export is to_onnx:
        pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    # Compilers are slow, and are tested elsewhere.
    with mock.patch.object(Compiler, "find", return_value=None):
        check = export(model).check
    assert check.n_on_edge <= check.n_rows / 50  # made to be as close to splits as float32 goes


@some
@given(model=trees(), precision=st.sampled_from(["int16", "int8"]))
def test_integers(model, precision):
    with mock.patch.object(Compiler, "find", return_value=None):
        check = to_c(model, precision=precision, min_agreement=0.0).check
    assert check.same_leaf >= (0.98 if precision == "int16" else 0.6)
