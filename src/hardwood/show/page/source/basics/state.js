// The reader's choices. Parts of the page change them with `change`, and follow changes made
// elsewhere with `whenever`.
"use strict";

const state = {
  tree: 0, // number of the tree that is drawn
  selected: 0, // number of the node that the panel describes
  prediction: null, // `predictionFor` of the current row, or null
  feature: null, // number of the feature that is searched for, or null
  shade: 0, // the output that determines the color, if numbers do
  terms: Infinity, // most terms of the sizes to slide along
};

const listeners = [];

/** Call `listener(changed)` after every change of one of the named parts of the state. */
function whenever(names, listener) {
  listeners.push({ names, listener });
}

/** Set parts of the state. */
function change(changes) {
  const changed = new Set(Object.keys(changes).filter((name) => state[name] !== changes[name]));
  Object.assign(state, changes);
  if (changed.size === 0) return;
  for (const { names, listener } of listeners) {
    if (names.some((name) => changed.has(name))) listener(changed);
  }
}

let model = null; // set once, by main.js

function currentTree() {
  return model.trees[state.tree];
}

/** What depends on the size of the tree, if the page has several: its summary, for example. */
function currentSize() {
  return model.sizes ? model.sizes.points[state.tree] : model;
}

/** Path of the current row through the drawn tree; null without a row. */
function currentPath() {
  return state.prediction && state.prediction.trees[state.tree];
}

/** The nodes on that path. */
function currentPathNodes() {
  const path = currentPath();
  return path ? [...path.steps.map((step) => step.node), path.node] : [];
}

/** The prediction for the current row: of the forest, or of the drawn tree. */
function currentOutputs() {
  return model.combine === null ? currentPath().outputs : state.prediction.outputs;
}

/** Show a row and its paths through all trees; null removes it. */
function showRow(row) {
  change({ prediction: row && predictionFor(model, row) });
}
