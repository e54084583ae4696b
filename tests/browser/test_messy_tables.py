"""Pages of models learned from messy tables: they open, agree with the library, and stay text."""

from __future__ import annotations

import numpy as np
import pytest

from messy import KINDS, N_ROWS, TABLES, fitted, table, truth

HARD = [
    kind
    for kind in KINDS
    if kind not in ("soft", "soft numbers", "three branches", "latent", "clusters")
]

# Visits every node, every row and every panel; returns the predictions, and numbers gone wrong.
VISIT = """n => {
  const wrong = new Set();
  const read = () => {
    for (const part of document.querySelectorAll("header, main, [id^=panel-]"))
      for (const [word] of part.textContent.matchAll(/NaN|undefined|Infinity|\\[object/g))
        wrong.add(word);
  };
  setAllOpen(true);
  for (const tab of TABS) openTab(tab), read();
  for (let node = 0; node < currentTree().nNodes; node++) selectNode(node), read();
  const rows = Array.from({ length: n }, (_, i) => {
    chooseRow(i);
    read();
    const { leaves, outputs } = document.getElementById("prediction").dataset;
    return { leaves: JSON.parse(leaves), outputs: JSON.parse(outputs) };
  });
  return { rows, wrong: [...wrong] };
}"""


def visit(kind, name, open_page):
    model, messy = fitted(kind, table(name)), table(name)
    hard = model.hard("a page")
    reader = open_page(model.show(None, messy.X, truth(model, messy)), width=1600)
    seen = reader.evaluate(VISIT, N_ROWS)
    found = seen["rows"]
    assert seen["wrong"] == []
    reader.settle()
    leaves = hard.apply(messy.X).reshape(N_ROWS, -1)
    assert [row["leaves"] for row in found] == leaves.tolist()
    outputs = np.array([row["outputs"] for row in found])
    np.testing.assert_allclose(outputs, model.outputs(messy.X), rtol=1e-9, atol=1e-12)
    reader.page.wait_for_selector("#check:not(:empty)", state="attached")
    assert reader.page.locator("#check").get_attribute("data-different") == "0"
    assert reader.evaluate("document.querySelectorAll('script').length") == 2  # no name is markup


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_a_page(name, open_page):
    visit("axis-aligned", name, open_page)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", HARD)
def test_every_kind_and_table_has_a_page(kind, name, open_page):
    visit(kind, name, open_page)
