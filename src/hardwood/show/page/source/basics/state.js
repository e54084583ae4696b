// What the reader has chosen. Parts of the page change it through `change`, and hear of the changes
// of others through `whenever`.
"use strict";

const state = {
  tree: 0, // number of the tree that is drawn
  selected: 0, // number of the node that the panel describes
  answer: null, // `answerTo` of the row that goes down the tree, or null
  feature: null, // number of the feature that is searched for, or null
  shade: 0, // which output gives the color, where numbers do
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

/** Path of the row through the tree that is drawn; null without a row. */
function currentPath() {
  return state.answer && state.answer.trees[state.tree];
}

/** The nodes on that path. */
function currentPathNodes() {
  const path = currentPath();
  return path ? [...path.steps.map((step) => step.node), path.node] : [];
}

/** Send a row down all trees and show it; null takes it away. */
function showRow(row) {
  change({ answer: row && answerTo(model, row) });
}
