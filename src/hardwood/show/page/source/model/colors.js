// Colors: one for each class, or a scale from low to high for numbers.
"use strict";

// Blue, gray, red: safe for color-blind readers, and visible on light and dark.
const SCALE = [
  [47, 111, 196],
  [126, 168, 214],
  [188, 184, 178],
  [226, 152, 104],
  [194, 66, 45],
];

/** The color at a position on the scale, 0 to 1. */
function shadeColor(share) {
  const place = Math.min(Math.max(share, 0), 1) * (SCALE.length - 1);
  const i = Math.min(Math.floor(place), SCALE.length - 2);
  const mixed = SCALE[i].map((low, c) => Math.round(low + (place - i) * (SCALE[i + 1][c] - low)));
  return `rgb(${mixed.join(" ")})`;
}

/** The position of an output on its scale. */
function shareOnScale(value, output = state.shade) {
  const { low, high } = model.colors;
  return (value - low[output]) / (high[output] - low[output]);
}

function hasGroups() {
  return model.colors.groupOfClass !== null;
}

/** The CSS class for the color of a group of classes, defined in page.css. */
function groupClass(group) {
  return `group-${group}`;
}

/** Names of the groups of classes. */
function groupNames() {
  const names = Array.from({ length: model.colors.groups }, () => []);
  model.outputs.forEach((name, o) => names[model.colors.groupOfClass[o]].push(name));
  return names.map((group) => (group.length === 1 ? group[0] : `${group.length} other classes`));
}

/** Paint an element in the color of a leaf. */
function paintLeaf(tree, leaf, painted) {
  if (hasGroups()) {
    painted.classList.add(
      groupClass(model.colors.groupOfClass[predictedClass(leafValues(tree, leaf))]),
    );
  } else {
    paintShade(painted, meanOutputs(tree)[tree.nSplits + leaf]);
  }
}

/** Paint an element in the color of a tree's output. */
function paintShade(painted, value) {
  const share = model.combine === "sum" ? scoreShare(value) : shareOnScale(value);
  painted.style.setProperty("--paint", shadeColor(share));
  painted.classList.add("shaded");
}

/** The position of a tree's score on a scale that is symmetric about 0. */
function scoreShare(score) {
  const ofShade = (_, i) => i % model.outputs.length === state.shade;
  const sizes = model.trees.map((tree) => largestSize(tree.values.filter(ofShade)));
  return 0.5 + score / (2 * Math.max(...sizes));
}

const knownMeans = new WeakMap(); // tree -> { shade, means }

/** Mean output of each node over its rows; linear leaves count with their value at the means. */
function meanOutputs(tree) {
  const known = knownMeans.get(tree);
  if (known?.shade === state.shade) return known.means;
  const rowsOf = (node) => rowCount(tree, node, model) ?? 1;
  const means = new Float64Array(tree.nNodes);
  for (let leaf = 0; leaf < tree.nLeaves; leaf++) {
    means[tree.nSplits + leaf] = linked(leafValues(tree, leaf), tree.link)[state.shade];
  }
  for (let split = tree.nSplits - 1; split >= 0; split--) {
    const [left, right] = childrenOf(tree, split);
    const total = rowsOf(left) + rowsOf(right);
    const share = total ? rowsOf(right) / total : 0.5;
    means[split] = (1 - share) * means[left] + share * means[right];
  }
  knownMeans.set(tree, { shade: state.shade, means });
  return means;
}

/** The meaning of the colors, as text. */
function colorMeaning() {
  const what = model.target ?? (hasGroups() ? "class" : model.outputs[state.shade]);
  if (!model.rows) return `${what} of training rows`;
  return `${model.colors.areTrue ? "true" : "predicted"} ${what}`;
}

/** Fill the legend of the drawing. */
function drawLegend() {
  const legend = byId("legend");
  const meaning = element("span", { class: "meaning", text: `color: ${colorMeaning()}` });
  legend.replaceChildren(meaning, ...(hasGroups() ? groupKeys() : [scaleKey()]));
}

function groupKeys() {
  return groupNames().map((name, g) =>
    element(
      "span",
      { class: "key" },
      element("i", { class: `swatch ${groupClass(g)}` }),
      nameElement(name),
    ),
  );
}

function scaleKey() {
  const { low, high } = model.colors;
  const spread = high[state.shade] - low[state.shade];
  const bar = element("i", { class: "scale" });
  bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(shadeColor)})`;
  const ends = [low, high].map((end) => numberText(end[state.shade], 3, spread));
  const key = element("span", { class: "key" }, ends[0], bar, ends[1]);
  if (model.colors.low.length > 1) key.prepend(shadeChooser());
  return key;
}

/** A selector for the output that determines the color. */
function shadeChooser() {
  const options = model.outputs
    .slice(0, model.colors.low.length)
    .map((name, o) => element("option", { value: o, text: name, selected: o === state.shade }));
  return element(
    "select",
    {
      "aria-label": "output shown as color",
      on: { change: (event) => change({ shade: Number(event.target.value) }) },
    },
    ...options,
  );
}
