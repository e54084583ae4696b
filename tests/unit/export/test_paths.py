"""The path of an export is checked before any work starts."""

from __future__ import annotations

import pytest

from hardwood.export import to_c, to_json, to_onnx, to_python, to_rules, to_sql
from trees import make_tree


@pytest.mark.parametrize("export", [to_c, to_json, to_onnx, to_python, to_rules, to_sql])
def test_an_invalid_path_is_refused_at_once(export, tmp_path, monkeypatch):
    if export is to_onnx:
        pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    monkeypatch.setitem(export.__globals__, "plan_of", None)  # the work would fail
    tree = make_tree(1)
    with pytest.raises(IsADirectoryError, match=r"cannot write an export to .*is a directory") as e:
        export(tree, tmp_path)
    assert ".part" not in str(e.value)
    with pytest.raises(FileNotFoundError, match=r"'.*no' does not exist\. Make it first"):
        export(tree, tmp_path / "no" / "m")
    with pytest.raises(FileNotFoundError, match=r"to '': the name is empty.*such as 'model\."):
        export(tree, "")
    assert list(tmp_path.iterdir()) == []
