// Reads the model from the JSON in the page: unpacks arrays, and adds derived data.
//
// Nodes of a tree are numbered as in the library: splits 0, 1, ..., m - 1, parents before
// children, then leaves m, ..., 2m. Two-dimensional arrays are flat, row after row.
"use strict";

const ARRAY_TYPES = {
  u1: Uint8Array,
  u2: Uint16Array,
  i4: Int32Array,
  f4: Float32Array,
  f8: Float64Array,
};

/** Undo `packed` of packing.py; null stays null. */
function unpacked(packed) {
  if (packed === null) return null;
  if (Array.isArray(packed)) return Float64Array.from(packed, (value) => value ?? NaN);
  if ("size" in packed) {
    const places = unpacked(packed.at);
    const numbers = unpacked(packed.is);
    const array = new Float64Array(packed.size);
    places.forEach((place, i) => (array[place] = numbers[i]));
    return array;
  }
  const [type] = Object.keys(packed);
  const bytes = Uint8Array.from(atob(packed[type]), (character) => character.charCodeAt(0));
  return new ARRAY_TYPES[type](bytes.buffer);
}

/** Read the model of the page. */
function readModel() {
  const content = JSON.parse(byId("data").textContent);
  const features = content.features;
  const columns = columnsOf(features);
  const model = { ...content, columns, spread: unpacked(content.spread) };
  model.colors = readColors(content.colors);
  model.rows = content.rows && readRows(content.rows, features.length);
  model.trees = content.trees.map((tree) => readTree(tree, model));
  if (model.sizes) model.sizes.points.forEach(readSize);
  return model;
}

/**
 * List what the weights of a split multiply: a number, a level, or being missing. Each feature
 * learns where its columns begin (`first`) and which is its missing indicator (`flagColumn`, or -1).
 */
function columnsOf(features) {
  const columns = [];
  features.forEach((feature, f) => {
    feature.first = columns.length;
    if (feature.levels) {
      feature.levels.forEach((level) => columns.push({ feature: f, kind: "level", level }));
    } else {
      columns.push({ feature: f, kind: "number" });
    }
    feature.flagColumn = feature.flag ? columns.push({ feature: f, kind: "missing" }) - 1 : -1;
  });
  return columns;
}

function readColors(colors) {
  return {
    ...colors,
    groupOfClass: unpacked(colors.groupOfClass),
    low: unpacked(colors.low),
    high: unpacked(colors.high),
  };
}

function readRows(rows, nFeatures) {
  const number = unpacked(rows.number);
  const columns = rows.columns.map(unpacked);
  return {
    ...rows,
    number,
    count: number.length,
    truth: unpacked(rows.truth),
    outputs: unpacked(rows.outputs),
    /** Values of the i-th row that can be chosen, one for each feature. */
    at: (i) => Float64Array.from({ length: nFeatures }, (_, f) => columns[f][i]),
  };
}

function readSize(size) {
  size.importances = unpacked(size.importances);
  size.outputs = unpacked(size.outputs);
}

function readTree(packed, model) {
  const tree = { ...packed };
  const arrays = ["children", "weights", "bias", "exponent", "values", "counts", "leafWeights"];
  for (const name of arrays) tree[name] = unpacked(packed[name]);
  tree.nSplits = tree.children.length / 2;
  tree.nLeaves = tree.nSplits + 1;
  tree.nNodes = tree.nSplits + tree.nLeaves;
  // The library writes leaf l as -1 - l.
  tree.children = Int32Array.from(tree.children, (c) => (c >= 0 ? c : tree.nSplits - 1 - c));
  tree.nOutputs = tree.values.length / tree.nLeaves;
  tree.nColumns = model.columns.length;
  Object.assign(tree, kinship(tree));
  tree.histograms = packed.histograms && readHistograms(packed.histograms);
  const hasShares = tree.task === "classification" && !tree.leafWeights;
  tree.knowsClasses = Boolean(tree.histograms || (tree.counts && hasShares));
  tree.rowsAt = rowsAtNodes(tree, model);
  return tree;
}

function readHistograms(packed) {
  return Object.fromEntries(Object.entries(packed).map(([name, of]) => [name, unpacked(of)]));
}

/** Parent and depth of each node, and the number of splits below it, itself included. */
function kinship(tree) {
  const parent = new Int32Array(tree.nNodes).fill(-1);
  const depth = new Int32Array(tree.nNodes);
  const splitsBelow = new Int32Array(tree.nNodes);
  for (let i = 0; i < tree.nSplits; i++) {
    for (const child of childrenOf(tree, i)) {
      parent[child] = i;
      depth[child] = depth[i] + 1;
    }
  }
  for (let i = tree.nSplits - 1; i >= 0; i--) {
    splitsBelow[i] += 1;
    if (i > 0) splitsBelow[parent[i]] += splitsBelow[i];
  }
  return { parent, depth, splitsBelow, maxDepth: depth.reduce((a, b) => Math.max(a, b), 0) };
}

function isLeaf(tree, node) {
  return node >= tree.nSplits;
}

/** Left and right child of a split. */
function childrenOf(tree, split) {
  return [tree.children[2 * split], tree.children[2 * split + 1]];
}

/** The branch that leads from its parent to a node: "yes" or "no". */
function sideOf(tree, node) {
  return node === tree.children[2 * tree.parent[node]] ? "no" : "yes";
}

/** The path from the root to a node, both included. */
function wayTo(tree, node) {
  const way = [];
  for (let at = node; at >= 0; at = tree.parent[at]) way.push(at);
  return way.reverse();
}

/**
 * Number of rows that reach each node, by color, (nodes, groups): rows of the given table, or
 * training rows divided by the leaves' probabilities (all in the first color if there are none).
 * Null if the number of rows is unknown.
 */
function rowsAtNodes(tree, model) {
  const groups = model.colors.groups;
  const rows = new Float64Array(tree.nNodes * groups);
  if (tree.histograms) {
    rows.set(tree.histograms.leafCounts, tree.nSplits * groups);
  } else if (tree.counts) {
    trainingRowsAtLeaves(tree, model, rows);
  } else {
    return null;
  }
  for (let node = tree.nNodes - 1; node > 0; node--) {
    // Leaves have the largest numbers but any parent, so splits are summed in a second pass.
    if (isLeaf(tree, node)) addGroups(rows, groups, tree.parent[node], node);
  }
  for (let split = tree.nSplits - 1; split > 0; split--) {
    addGroups(rows, groups, tree.parent[split], split);
  }
  return rows;
}

function addGroups(rows, groups, to, from) {
  for (let g = 0; g < groups; g++) rows[to * groups + g] += rows[from * groups + g];
}

function trainingRowsAtLeaves(tree, model, rows) {
  const { groups, groupOfClass } = model.colors;
  for (let leaf = 0; leaf < tree.nLeaves; leaf++) {
    const node = tree.nSplits + leaf;
    if (!tree.knowsClasses) {
      rows[node * groups] = tree.counts[node];
      continue;
    }
    for (let o = 0; o < tree.nOutputs; o++) {
      const share = tree.values[leaf * tree.nOutputs + o];
      rows[node * groups + groupOfClass[o]] += share * tree.counts[node];
    }
  }
}

/** Number of rows that reach a node; null if unknown. */
function rowCount(tree, node, model) {
  if (!tree.histograms) return tree.counts && tree.counts[node];
  return groupsAt(tree, node, model).reduce((a, b) => a + b, 0);
}

/** Number of rows that reach a node, by color. */
function groupsAt(tree, node, model) {
  const groups = model.colors.groups;
  return tree.rowsAt.subarray(node * groups, (node + 1) * groups);
}
