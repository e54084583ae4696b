// Places the nodes of a tree: root on top, no overlaps, parents centered above their children. All
// lengths are in pixels at scale 1.
"use strict";

// Cards are for reading. If too many nodes are shown to read each one, they become small boxes, close
// together, so that the shape of the whole tree is visible.
const CARDS = {
  split: { width: 236, height: 126 },
  leaf: { width: 146, height: 88 },
  linear: { width: 236, height: 152 }, // a leaf with one equation
  gap: 18,
};
const WITHOUT_HISTOGRAM = 76; // height of a split's card
const BOX = { width: 22, height: 40 };
const BOXES = { split: BOX, leaf: BOX, linear: BOX, gap: 4 };
const MOST_CARDS = 160;
const CARD_SPACE = 70; // from a split's card to the next level
const CARD_FLOW = 64; // width of the stream of all rows

const openSplits = new Map(); // tree number -> Uint8Array, 1 where a split shows its children
const MOST_AT_FIRST = 40; // nodes
const CUT_AT_FIRST = 1.25; // widths of the window that the first view may need

function nodeSize(tree, node, form) {
  if (!isLeaf(tree, node)) return form.split;
  return tree.scorecards ? form.linear : form.leaf;
}

/** Open splits of the drawn tree; at first, as many levels as fit into view. */
function currentOpen() {
  if (!openSplits.has(state.tree)) openSplits.set(state.tree, firstLevels(currentTree()));
  return openSplits.get(state.tree);
}

function firstLevels(tree) {
  const room = (CUT_AT_FIRST * canvasSize().width) / SCALES.readable;
  let open = openLevels(tree, 1);
  for (let levels = 2; levels <= tree.maxDepth; levels++) {
    const more = openLevels(tree, levels);
    const { width, shown } = layoutOf(tree, more);
    if (width > room || shown.reduce((a, b) => a + b, 0) > MOST_AT_FIRST) break;
    open = more;
  }
  return open;
}

function openLevels(tree, levels) {
  return Uint8Array.from({ length: tree.nSplits }, (_, i) => Number(tree.depth[i] < levels));
}

/**
 * Place all nodes that are shown.
 *
 * @returns `shown` (1 for shown nodes); `x` and `y` of the middle of its upper edge; `width` of it
 *   all; `form`, cards or boxes; `level`, from one level to the next; and `flow`, the width of the
 *   stream of all rows. Children follow their parents in number, so loops need no recursion.
 */
function layoutOf(tree, open) {
  const shown = shownNodes(tree, open);
  const count = shown.reduce((a, b) => a + b, 0);
  const form = count > MOST_CARDS ? BOXES : CARDS;
  const extent = extents(tree, open, form);
  const width = extent[0];
  // Levels are farther apart in flatter trees.
  const level =
    form === CARDS ? CARDS.split.height + CARD_SPACE : Math.min(Math.max(width / (3 * tree.maxDepth), 80), 420);
  const flow = form === CARDS ? CARD_FLOW : Math.min(width / 16, 420);
  const x = positions(tree, open, shown, extent);
  const y = Float64Array.from(tree.depth, (depth) => depth * level);
  return { shown, x, y, width, form, level, flow };
}

function shownNodes(tree, open) {
  const shown = new Uint8Array(tree.nNodes);
  shown[0] = 1;
  for (let i = 0; i < tree.nSplits; i++) {
    if (shown[i] && open[i]) for (const child of childrenOf(tree, i)) shown[child] = 1;
  }
  return shown;
}

/** Width of the strip for a node and everything below it. */
function extents(tree, open, form) {
  const extent = new Float64Array(tree.nNodes);
  for (let node = tree.nNodes - 1; node >= 0; node--) {
    extent[node] = nodeSize(tree, node, form).width + form.gap;
    if (isLeaf(tree, node) || !open[node]) continue;
    const [left, right] = childrenOf(tree, node);
    extent[node] = Math.max(extent[node], extent[left] + extent[right]);
  }
  return extent;
}

function positions(tree, open, shown, extent) {
  const start = new Float64Array(tree.nNodes); // left end of the strip
  for (let i = 0; i < tree.nSplits; i++) {
    const [left, right] = childrenOf(tree, i);
    start[left] = start[i] + (extent[i] - extent[left] - extent[right]) / 2;
    start[right] = start[left] + extent[left];
  }
  const x = start.map((from, node) => from + extent[node] / 2);
  for (let i = tree.nSplits - 1; i >= 0; i--) {
    if (!shown[i] || !open[i]) continue;
    const [left, right] = childrenOf(tree, i);
    x[i] = (x[left] + x[right]) / 2;
  }
  return x;
}

/** Share of all rows that reach a node; if unknown, a small constant for a thin stream. */
function flowShare(tree, node) {
  const total = rowCount(tree, 0, model);
  return total ? rowCount(tree, node, model) / total : 0.08;
}
