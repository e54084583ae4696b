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
const TERMS_ON_CARD = 2; // for which a split's card has room
const TERM_LINE = 18.2; // height that each further one needs
const BOX = { width: 22, height: 40 };
const BOXES = { split: BOX, leaf: BOX, linear: BOX, gap: 4 };
const MOST_CARDS = 160;
const CARD_SPACE = 70; // from a split's card to the next level
const CARD_FLOW = 64; // width of the stream of all rows

const openSplits = new Map(); // tree number -> Uint8Array, 1 where a split shows its children
const MOST_AT_FIRST = 40; // nodes

/** Make the cards of splits as high as the longest condition of the model needs. */
function fitCards() {
  if (!model.rows) CARDS.split.height = WITHOUT_HISTOGRAM;
  const conditions = model.trees.flatMap((tree) => tree.conditions);
  const most = conditions.reduce((a, [terms]) => Math.max(a, terms.length), TERMS_ON_CARD);
  CARDS.split.height += TERM_LINE * (most - TERMS_ON_CARD);
}

function nodeSize(tree, node, form) {
  if (!isLeaf(tree, node)) return form.split;
  return tree.scorecards ? form.linear : form.leaf;
}

/** Open splits of the drawn tree; at first, as many levels as the window can show in full. */
function currentOpen() {
  if (!openSplits.has(state.tree)) openSplits.set(state.tree, firstLevels(currentTree()));
  return openSplits.get(state.tree);
}

function firstLevels(tree) {
  let open = openLevels(tree, 1);
  for (let levels = 2; levels <= tree.maxDepth; levels++) {
    const more = openLevels(tree, levels);
    const layout = layoutOf(tree, more);
    if (layout.shown.reduce((a, b) => a + b, 0) > MOST_AT_FIRST) break;
    if (fittingScale(wholeBox(tree, layout)) < SCALES.readable) break;
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
  const { x, width } = columnsOfNodes(tree, open, form);
  // Levels are farther apart in flatter trees.
  const level =
    form === CARDS ? CARDS.split.height + CARD_SPACE : Math.min(Math.max(width / (3 * tree.maxDepth), 80), 420);
  const flow = form === CARDS ? CARD_FLOW : Math.min(width / 16, 420);
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

/**
 * The middle of each node, from the left end of the drawing, and the width of it all. Subtrees stand
 * as close as their outlines allow, as in Reingold and Tilford, "Tidier drawings of trees", 1981.
 */
function columnsOfNodes(tree, open, form) {
  const toParent = new Float64Array(tree.nNodes); // from the middle of the parent
  const outlines = new Array(tree.nNodes);
  for (let node = tree.nNodes - 1; node >= 0; node--) {
    const half = (nodeSize(tree, node, form).width + form.gap) / 2;
    if (isLeaf(tree, node) || !open[node]) {
      outlines[node] = { left: [-half], right: [half], shift: 0 };
      continue;
    }
    const [left, right] = childrenOf(tree, node);
    const apart = distanceApart(outlines[left], outlines[right]);
    toParent[left] = -apart / 2;
    toParent[right] = apart / 2;
    outlines[node] = joinedOutline(outlines[left], outlines[right], apart);
    outlines[node].left.push(-half - outlines[node].shift);
    outlines[node].right.push(half - outlines[node].shift);
    outlines[left] = outlines[right] = null;
  }
  const { left, right, shift } = outlines[0];
  const start = left.reduce((a, b) => Math.min(a, b), Infinity) + shift;
  const end = right.reduce((a, b) => Math.max(a, b), -Infinity) + shift;
  const x = toParent;
  x[0] = -start;
  for (let node = 1; node < tree.nNodes; node++) x[node] += x[tree.parent[node]];
  return { x, width: end - start };
}

/**
 * How far two subtrees must be apart. An outline has the ends of each level, the lowest level first,
 * which are to be moved by its `shift`.
 */
function distanceApart(a, b) {
  let apart = 0;
  for (let up = 1; up <= Math.min(a.left.length, b.left.length); up++) {
    const [end, start] = [a.right[a.right.length - up], b.left[b.left.length - up]];
    apart = Math.max(apart, end + a.shift - start - b.shift);
  }
  return apart;
}

/** The outline of two subtrees around their middle. It reuses the longer one of theirs. */
function joinedOutline(a, b, apart) {
  const [shiftA, shiftB] = [a.shift - apart / 2, b.shift + apart / 2];
  const [longer, shorter] = a.left.length >= b.left.length ? [a, b] : [b, a];
  const [shift, other] = longer === a ? [shiftA, shiftB] : [shiftB, shiftA];
  const side = longer === a ? "right" : "left";
  for (let up = 1; up <= shorter.left.length; up++) {
    longer[side][longer[side].length - up] =
      shorter[side][shorter[side].length - up] + other - shift;
  }
  longer.shift = shift;
  return longer;
}

/** Share of all rows that reach a node; if unknown, a small constant for a thin stream. */
function flowShare(tree, node) {
  const total = rowCount(tree, 0, model);
  return total ? rowCount(tree, node, model) / total : 0.08;
}
