// The drawing: cards and streams of visible nodes only, so that the cost of a tree with a thousand
// nodes is limited by what fits into the window.
"use strict";

const READABLE = 0.42; // scale below which cards become colored boxes
const WIDE = 30; // width in pixels from which a stream between boxes has bands
const SPARE = 160; // pixels around the window where nodes are drawn too, so that dragging shows no gaps

let goal = null; // layout of the tree after the animation
let places = null; // layout in the current frame
let isReadable = true;
const drawn = new Map(); // node -> { card, stream }

/** Draw another tree, or the same one in another form. */
function drawTree() {
  clearDrawing();
  goal = layoutOf(currentTree(), currentOpen());
  places = goal;
  fitTree();
}

/** Lay the tree out again after something was opened or closed, and move the cards there. */
function redrawTree() {
  const tree = currentTree();
  const from = { x: places.x.slice(), y: places.y.slice() };
  const before = places;
  goal = layoutOf(tree, currentOpen());
  if (goal.form !== before.form) {
    drawTree();
    return;
  }
  for (let node = 1; node < tree.nNodes; node++) {
    if (goal.shown[node] && !before.shown[node]) startAtParent(tree, from, node);
  }
  const still = prefersStillness() || goal.form === BOXES;
  tween("layout", still ? 0 : 240, (share) => {
    places = share === 1 ? goal : between(from, goal, share);
    placeAll();
    drawVisible();
  });
}

/** New nodes start at their parents, which have smaller numbers. */
function startAtParent(tree, from, node) {
  from.x[node] = from.x[tree.parent[node]];
  from.y[node] = from.y[tree.parent[node]];
}

function between(from, to, share) {
  const mix = (a, b) => a.map((value, i) => value + share * (b[i] - value));
  return { ...to, x: mix(from.x, to.x), y: mix(from.y, to.y) };
}

/** Open or close splits. */
function setOpen(splits, isOpen) {
  const open = currentOpen();
  for (const split of splits) open[split] = Number(isOpen);
  redrawTree();
  for (const split of splits) if (drawn.has(split)) decorate(split, drawn.get(split).card);
}

/** Open all splits above some nodes, so that these are shown. */
function reveal(nodes) {
  const tree = currentTree();
  const closed = nodes
    .flatMap((node) => wayTo(tree, node).slice(0, -1))
    .filter((split) => !currentOpen()[split]);
  if (closed.length) setOpen(closed, true);
}

// Visible nodes

function drawVisible() {
  const tree = currentTree();
  const canBeRead = places.form === CARDS && view.scale >= READABLE;
  if (canBeRead !== isReadable) clearDrawing();
  isReadable = canBeRead;
  byId("cards").classList.toggle("boxes", places.form === BOXES);
  const seen = visibleNodes(tree);
  for (const node of drawn.keys()) if (!seen.has(node)) erase(node);
  const cards = document.createDocumentFragment();
  const streams = document.createDocumentFragment();
  for (const node of seen) {
    if (!drawn.has(node)) drawNode(tree, node, cards, streams);
  }
  byId("cards").append(cards);
  byId("streams").append(streams);
}

/** Nodes whose cards or streams are in the window, and the selected one. */
function visibleNodes(tree) {
  const { width, height } = canvasSize();
  const [left, right] = [-SPARE, width + SPARE].map((x) => (x - view.x) / view.scale);
  const [top, bottom] = [-SPARE, height + SPARE].map((y) => (y - view.y) / view.scale);
  const seen = new Set([state.selected]);
  for (let node = 0; node < tree.nNodes; node++) {
    if (!places.shown[node]) continue;
    const above = node ? tree.parent[node] : node;
    const half = places.form.split.width / 2;
    const isBeside =
      Math.max(places.x[node], places.x[above]) + half < left ||
      Math.min(places.x[node], places.x[above]) - half > right;
    const isBeyond = places.y[node] + places.form.split.height < top || places.y[above] > bottom;
    if (!isBeside && !isBeyond) seen.add(node);
  }
  if (!places.shown[state.selected]) seen.delete(state.selected);
  return seen;
}

function drawNode(tree, node, cards, streams) {
  const card = makeCard(tree, node, isReadable);
  const stream = node ? makeStream(tree, node) : null;
  drawn.set(node, { card, stream });
  place(tree, node);
  decorate(node, card);
  cards.append(card);
  if (stream) streams.append(stream);
}

function erase(node) {
  const { card, stream } = drawn.get(node);
  card.remove();
  stream?.remove();
  drawn.delete(node);
}

function clearDrawing() {
  for (const node of [...drawn.keys()]) erase(node);
}

// Positions

function placeAll() {
  const tree = currentTree();
  for (const node of drawn.keys()) if (places.shown[node]) place(tree, node);
}

function place(tree, node) {
  const { card, stream } = drawn.get(node);
  const { width, height } = nodeSize(tree, node, places.form);
  card.style.width = `${width}px`;
  card.style.height = `${height}px`;
  const left = round(places.x[node] - width / 2);
  card.style.transform = `translate(${left}px, ${round(places.y[node])}px)`;
  if (stream) placeStream(tree, node, stream);
}

/** The stream of rows into a node: a band for each color, or one band if it is narrow. */
function makeStream(tree, node) {
  const stream = svgElement("g", { "data-node": node });
  const isWide = places.form === CARDS ? isReadable : places.flow * flowShare(tree, node) > WIDE;
  if (tree.knowsClasses && hasGroups() && rowCount(tree, node, model)) {
    const counts = groupsAt(tree, node, model);
    const groups = isWide ? [...counts.keys()] : [largestAt(counts)];
    stream.append(...groups.map((g) => svgElement("path", { class: groupClass(g) })));
  } else {
    const band = svgElement("path");
    if (!hasGroups()) paintShade(band, meanOutputs(tree)[node]);
    stream.append(band);
  }
  if (isReadable)
    stream.append(svgElement("text", { "text-anchor": "middle", text: sideOf(tree, node) }));
  return stream;
}

function placeStream(tree, node, stream) {
  const above = tree.parent[node];
  const wide = Math.max(places.flow * flowShare(tree, node), 1.2);
  const from = places.x[above] + streamOffset(tree, node, wide);
  const to = places.x[node] - wide / 2;
  const start = places.y[above] + places.form.split.height;
  const ends = { from, to, start, end: places.y[node], wide };
  const total = rowCount(tree, node, model);
  const bands = stream.querySelectorAll("path");
  let done = 0; // share of the stream that earlier bands take up
  bands.forEach((band, g) => {
    const share = bands.length === 1 ? 1 : groupsAt(tree, node, model)[g] / total;
    band.setAttribute("d", share ? bandPath(ends, done, done + share) : "");
    done += share;
  });
  const label = stream.querySelector("text");
  label?.setAttribute("x", round(0.3 * places.x[above] + 0.7 * places.x[node]));
  label?.setAttribute("y", round(ends.start + 0.62 * (ends.end - ends.start)));
}

/** Where a stream leaves its parent: left and right stream side by side, centered. */
function streamOffset(tree, node, wide) {
  const children = childrenOf(tree, tree.parent[node]);
  const half = (places.flow * (flowShare(tree, children[0]) + flowShare(tree, children[1]))) / 2;
  return node === children[0] ? -half : half - wide;
}

/**
 * A band of a stream, between two shares of its width. If the stream runs sideways, its edges turn
 * one after the other, like the lanes of a road; otherwise they would meet halfway.
 */
function bandPath({ from, to, start, end, wide }, first, last) {
  const sideways = Math.max(-1, Math.min((from - to) / 240, 1));
  const edge = (share) => ({
    x: round(from + wide * share),
    goal: round(to + wide * share),
    turn: round((start + end) / 2 + sideways * wide * (share - 0.5)),
  });
  const [a, b] = [edge(first), edge(last)];
  return (
    `M${a.x} ${start}C${a.x} ${a.turn} ${a.goal} ${a.turn} ${a.goal} ${end}H${b.goal}` +
    `C${b.goal} ${b.turn} ${b.x} ${b.turn} ${b.x} ${start}z`
  );
}

// Marks

/** Mark a card: selected, on the row's path, found by the search, closed. */
function decorate(node, card) {
  const tree = currentTree();
  const onPath = currentPathNodes();
  const isSelected = node === state.selected;
  card.classList.toggle("selected", isSelected);
  card.setAttribute("aria-selected", isSelected);
  card.tabIndex = isSelected ? 0 : -1;
  card.classList.toggle("on-path", onPath.includes(node));
  card.classList.toggle("off-path", onPath.length > 0 && !onPath.includes(node));
  card.classList.toggle("found", state.feature !== null && usesFeature(tree, node, state.feature));
  drawn.get(node).stream?.classList.toggle("on-path", onPath.includes(node));
  markScore(tree, node, card);
  if (!isLeaf(tree, node)) markOpen(tree, node, card);
}

/** The row's score, as a line in the histogram of the card. */
function markScore(tree, node, card) {
  card.querySelector(".row-line")?.remove();
  const step = currentPath()?.steps.find((taken) => taken.node === node);
  const chart = card.querySelector(".small-chart");
  if (!step || !chart) return;
  chart.append(scoreLine(splitBins(tree, node), step.score, SMALL.width, SMALL.height, "row-line"));
}

function markOpen(tree, node, card) {
  const isOpen = Boolean(currentOpen()[node]);
  card.setAttribute("aria-expanded", isOpen);
  card.classList.toggle("closed", !isOpen);
  card.querySelector(".toggle")?.remove();
  if (!isReadable) return;
  const hidden = tree.splitsBelow[node];
  const toggle = button(isOpen ? "−" : `+ ${hidden}`, () => setOpen([node], !isOpen), {
    class: "toggle",
    tabindex: -1,
    "aria-hidden": "true",
    title: isOpen ? "Close this branch" : `Open this branch: ${plural(hidden, "split")}`,
  });
  if (!isOpen && state.feature !== null && findsBelow(tree, node)) toggle.classList.add("found");
  card.append(toggle);
}

// Views

function boxOf(tree, nodes, layout) {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const node of nodes) {
    const { width, height } = nodeSize(tree, node, layout.form);
    box.left = Math.min(box.left, layout.x[node] - width / 2);
    box.right = Math.max(box.right, layout.x[node] + width / 2);
    box.top = Math.min(box.top, layout.y[node]);
    box.bottom = Math.max(box.bottom, layout.y[node] + height + 14);
  }
  return box;
}

function wholeBox(tree = currentTree(), layout = goal) {
  const nodes = [];
  layout.shown.forEach((isShown, node) => isShown && nodes.push(node));
  return boxOf(tree, nodes, layout);
}

/** Fit the whole tree; if cards would be too small to read, center the root instead. */
function fitTree() {
  const box = wholeBox();
  const seen = viewOfBox(box, goal.form === CARDS ? SCALES.readable : SCALES.least);
  const { width } = canvasSize();
  const isWhole = (box.right - box.left) * seen.scale <= width;
  if (!isWhole) seen.x = width / 2 - goal.x[0] * seen.scale;
  moveTo(seen, 0);
}

function overview() {
  moveTo(viewOfBox(wholeBox()));
}

/** Bring nodes into view, with as little change of the view as possible. */
function bringIntoView(nodes) {
  const box = boxOf(currentTree(), nodes, goal);
  const { width, height } = canvasSize();
  const edges = {
    left: view.x + box.left * view.scale,
    right: view.x + box.right * view.scale,
    top: view.y + box.top * view.scale,
    bottom: view.y + box.bottom * view.scale,
  };
  const isSeen =
    edges.left >= 0 && edges.right <= width && edges.top >= 0 && edges.bottom <= height;
  if (isSeen) return;
  const wide = edges.right - edges.left;
  const tall = edges.bottom - edges.top;
  if (wide > width || tall > height) {
    moveTo(viewOfBox(box));
    return;
  }
  const shift = (low, high, size) => Math.max(MARGIN - low, 0) || Math.min(size - MARGIN - high, 0);
  moveTo({
    x: view.x + shift(edges.left, edges.right, width),
    y: view.y + shift(edges.top, edges.bottom, height),
    scale: view.scale,
  });
}
