// Keyboard control: arrows move, Enter opens and closes, Escape clears.
"use strict";

const WALKS = {
  ArrowUp: (tree, node) => tree.parent[node],
  ArrowDown: (tree, node) => downFrom(tree, node),
  ArrowLeft: (tree, node) => besides(tree, node, -1),
  ArrowRight: (tree, node) => besides(tree, node, 1),
  Home: () => 0,
};

/** Down follows the row, or goes to the left child without one. A closed branch opens. */
function downFrom(tree, node) {
  if (isLeaf(tree, node)) return -1;
  if (!currentOpen()[node]) setOpen([node], true);
  const step = currentPath()?.steps.find((taken) => taken.node === node);
  return tree.children[2 * node + (step?.goesRight ? 1 : 0)];
}

/** The closest node on the same level on one side; -1 if there is none. */
function besides(tree, node, direction) {
  let nearest = -1;
  for (let other = 0; other < tree.nNodes; other++) {
    if (!goal.shown[other] || tree.depth[other] !== tree.depth[node]) continue;
    const distance = direction * (goal.x[other] - goal.x[node]);
    if (distance <= 0) continue;
    if (nearest < 0 || distance < direction * (goal.x[nearest] - goal.x[node])) nearest = other;
  }
  return nearest;
}

function pressKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const tree = currentTree();
  const walk = WALKS[event.key];
  if (walk) {
    const next = walk(tree, state.selected);
    if (next >= 0) selectNode(next, { focus: true });
  } else if (event.key === "Enter" || event.key === " ") {
    if (!isLeaf(tree, state.selected)) setOpen([state.selected], !currentOpen()[state.selected]);
  } else if (event.key === "+" || event.key === "=") {
    zoomBy(1.25);
  } else if (event.key === "-") {
    zoomBy(0.8);
  } else if (event.key === "0") {
    overview();
  } else {
    return;
  }
  event.preventDefault();
}

/** Escape clears the search first, then the row. */
function pressEscape(event) {
  if (event.key !== "Escape" || byId("help").open) return;
  if (state.feature !== null || byId("search").value) clearSearch();
  else if (state.prediction) showRow(null);
}

/** Select a node, and bring its card into view. */
function selectNode(node, { focus = false } = {}) {
  reveal([node]);
  change({ selected: node });
  bringIntoView([node]);
  drawVisible();
  if (focus) drawn.get(node)?.card.focus({ preventScroll: true });
}

function startKeyboard() {
  byId("cards").addEventListener("keydown", pressKey);
  document.addEventListener("keydown", pressEscape);
  byId("cards").addEventListener("click", (event) => {
    const card = event.target.closest(".card");
    if (card && !event.target.closest(".toggle")) {
      selectNode(Number(card.dataset.node), { focus: true });
      openTab("node");
    }
  });
  byId("cards").addEventListener("dblclick", (event) => {
    const card = event.target.closest(".card.split");
    const node = card && Number(card.dataset.node);
    if (card && !event.target.closest(".toggle")) setOpen([node], !currentOpen()[node]);
  });
}
