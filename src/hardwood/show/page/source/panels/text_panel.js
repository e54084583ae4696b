// The drawn tree as nested lists: for screen readers, for copying, and for small screens.
"use strict";

const OUTLINE = { levels: 30, nodes: 1000 }; // more take seconds to lay out

/** Built when first shown, and again for another tree. */
function drawTextPanel() {
  const panel = byId("panel-text");
  if (panel.hidden) return;
  if (panel.dataset.tree === String(state.tree)) return;
  panel.dataset.tree = state.tree;
  drawOutline(currentTree(), 0);
}

/** List a node and what is below it, as many levels as fit; what is cut off begins a list of its own. */
function drawOutline(tree, root) {
  const items = new Map();
  for (const node of nodesFrom(tree, root).reverse()) {
    if (isLeaf(tree, node)) items.set(node, leafItem(tree, node));
    else if (items.has(childrenOf(tree, node)[0])) items.set(node, splitItem(tree, node, items));
    else items.set(node, cutItem(tree, node));
  }
  const back = button("Back to the root", () => drawOutline(tree, 0), { class: "link" });
  const list = element("ul", { class: "outline" }, items.get(root));
  byId("panel-text").replaceChildren(...(root ? [back] : []), list);
}

/** The nodes of the list, level by level. */
function nodesFrom(tree, root) {
  const nodes = [root];
  let level = nodes;
  for (let depth = 0; depth < OUTLINE.levels; depth++) {
    level = level.filter((node) => !isLeaf(tree, node)).flatMap((node) => childrenOf(tree, node));
    if (level.length === 0 || nodes.length + level.length > OUTLINE.nodes) break;
    nodes.push(...level);
  }
  return nodes;
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
  return element(
    "li",
    {},
    splitLink(tree, split),
    element("ul", {}, items.get(right)),
    element("span", { class: "else", text: "else" }),
    element("ul", {}, items.get(left)),
  );
}

function splitLink(tree, split) {
  const text = `if ${conditionText(tree, split)}`;
  return button(text, () => selectNode(split), { class: "link" });
}

/** A split whose branches are not shown, with a link that lists them. */
function cutItem(tree, split) {
  const text = `… ${plural(tree.splitsBelow[split], "split")} from here`;
  const more = button(text, () => drawOutline(tree, split), { class: "link cut" });
  return element("li", {}, splitLink(tree, split), " ", more);
}
