// Starts the page: reads the model and draws every part, which then follows changes of the state.
"use strict";

const TABS = ["node", "row", "model", "text"];

function openTab(name) {
  for (const tab of TABS) {
    const isOpen = tab === name;
    byId(`panel-${tab}`).hidden = !isOpen;
    byId(`tab-${tab}`).setAttribute("aria-selected", isOpen);
    byId(`tab-${tab}`).tabIndex = isOpen ? 0 : -1;
  }
  drawTextPanel();
}

function startTabs() {
  TABS.forEach((name, i) => {
    byId(`tab-${name}`).addEventListener("click", () => openTab(name));
    byId(`tab-${name}`).addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      const next = TABS[(i + step + TABS.length) % TABS.length];
      openTab(next);
      byId(`tab-${next}`).focus();
    });
  });
}

/** Switch between light and dark; the system's choice is the default. */
function switchTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : window.matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
}

function startHeader() {
  byId("title").textContent = model.title;
  byId("summary").textContent = currentSize().summary;
  byId("theme").addEventListener("click", switchTheme);
  byId("show-help").addEventListener("click", () => byId("help").showModal());
  byId("close-help").addEventListener("click", () => byId("help").close());
  const chooser = byId("tree-chooser");
  chooser.hidden = model.combine === null || model.trees.length === 1;
  if (chooser.hidden) return;
  const options = model.trees.map((_, t) => element("option", { value: t, text: `${t + 1}` }));
  byId("tree").append(...options);
  byId("tree-of").textContent = `of ${model.trees.length}`;
  byId("tree").addEventListener("change", (event) => change({ tree: Number(event.target.value) }));
}

function startZoomButtons() {
  byId("zoom-in").addEventListener("click", () => zoomBy(1.3));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.3));
  byId("zoom-fit").addEventListener("click", overview);
  byId("open-all").addEventListener("click", () => setAllOpen(true));
  byId("close-all").addEventListener("click", () => setAllOpen(false));
}

/** Open the whole tree, or close all but the first levels, and fit it into view. */
function setAllOpen(isOpen) {
  const tree = currentTree();
  if (isOpen) {
    setOpen(
      Array.from({ length: tree.nSplits }, (_, i) => i),
      true,
    );
  } else {
    openSplits.set(state.tree, firstLevels(tree));
    drawTree();
    if (!goal.shown[state.selected]) selectNode(0);
  }
  overview();
}

/** Draw another tree of the forest, or of another size. */
function switchTree() {
  byId("tree").value = state.tree;
  byId("summary").textContent = currentSize().summary;
  Object.assign(state, { selected: 0 });
  drawTree();
  if (state.prediction) bringPathIntoView();
}

function startDrawing() {
  onViewChange = drawVisible;
  whenever(["tree"], switchTree);
  whenever(["selected", "prediction", "feature", "tree"], () => {
    for (const [node, { card }] of drawn) decorate(node, card);
  });
  whenever(["selected", "prediction", "feature", "tree", "shade"], drawNodePanel);
  whenever(["tree"], drawTextPanel);
  if (model.sizes) whenever(["tree"], drawModelPanel);
  whenever(["shade"], () => {
    drawLegend();
    clearDrawing();
    drawVisible();
  });
  drawLegend();
  drawTree();
  new ResizeObserver(drawVisible).observe(byId("canvas"));
}

function start() {
  model = readModel();
  fitCards();
  startSizes();
  startHeader();
  startTabs();
  startViewport();
  startDrawing();
  startKeyboard();
  startZoomButtons();
  startSearch();
  startRowPanel();
  drawNodePanel();
  drawModelPanel();
  openTab(model.combine !== null && model.trees.length > 1 ? "model" : "node");
  checkPredictions();
  document.documentElement.dataset.ready = "yes";
}

start();
