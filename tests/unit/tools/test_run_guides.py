"""Guide pages show what their Python prints and draws; one that shows something else fails."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "tools" / "run_guides.py"
PAGE = """# A page

```python
x = 2
print("two", x)
```

```text
{first}
```

Words.

```python
print("not shown")
from pathlib import Path

Path("drawn.png").write_text("a picture")
```

<img src="../images/drawn.png"> <img src="../images/other.png">

```python
print(3 * x, end="\\n\\n")
```

```text
{second}
```
"""


@pytest.fixture
def guides(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("run_guides", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "IMAGES", tmp_path)
    return module


def test_what_the_code_prints_is_put_below_it(guides, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    right = PAGE.format(first="two 2", second="6")
    assert guides.run(PAGE.format(first="old", second="lines\nof old"), "page") == right
    assert guides.run(right, "page") == right


def test_a_page_is_checked_or_changed_with_its_pictures(guides, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(first="two 2", second="7"))
    assert guides.main(["--check", str(page)]) == 1
    assert "page.md" in capsys.readouterr().out
    assert "7" in page.read_text()
    assert not (tmp_path / "drawn.png").exists()
    assert guides.main([str(page)]) == 0
    assert page.read_text() == PAGE.format(first="two 2", second="6")
    assert (tmp_path / "drawn.png").read_text() == "a picture"
    assert guides.main(["--check", str(page)]) == 0


def test_an_error_has_the_line_of_the_page(guides):
    with pytest.raises(ZeroDivisionError) as caught:
        guides.run("line 1\n\n```python\nx = 1\n1 / 0\n```\n", "page.md")
    assert caught.traceback[-1].lineno + 1 == 5
