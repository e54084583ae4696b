"""What the guide's page about the layers shows runs, from its first line to its last."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "torch.md"


def test_the_code_of_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 6
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
    assert "rows with a different prediction" in capsys.readouterr().out
