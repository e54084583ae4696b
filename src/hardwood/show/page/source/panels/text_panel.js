// The drawn tree as nested lists: for screen readers, for copying, and for small screens.
"use strict";

/** Built when first shown, and again for another tree. */
function drawTextPanel() {
  const panel = byId("panel-text");
  if (panel.hidden) return;
  const tree = currentTree();
  if (panel.dataset.tree === String(state.tree)) return;
  panel.dataset.tree = state.tree;
  const lists = new Array(tree.nNodes);
  for (let node = tree.nNodes - 1; node >= tree.nSplits; node--) lists[node] = leafItem(tree, node);
  for (let split = tree.nSplits - 1; split >= 0; split--)
    lists[split] = splitItem(tree, split, lists);
  panel.replaceChildren(element("ul", { class: "outline" }, lists[0]));
}

function leafItem(tree, node) {
  const count = rowCount(tree, node, model);
  const facts = [
    leafShareText(tree, node - tree.nSplits),
    count === null ? "" : `n = ${countText(count)}`,
  ];
  const link = button(leafText(tree, node - tree.nSplits), () => selectNode(node), {
    class: "link",
  });
  return element("li", { class: "leaf" }, link, ` ${facts.filter(Boolean).join(", ")}`);
}

/** As in the library's text, the branch of "if" comes before the branch of "else". */
function splitItem(tree, split, items) {
  const [left, right] = childrenOf(tree, split);
  const link = button(`if ${conditionText(tree, split)}`, () => selectNode(split), {
    class: "link",
  });
  return element(
    "li",
    {},
    link,
    element("ul", {}, items[right]),
    element("span", { class: "else", text: "else" }),
    element("ul", {}, items[left]),
  );
}
