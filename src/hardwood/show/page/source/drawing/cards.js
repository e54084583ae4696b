// The cards of the drawing: the condition of a split, or the prediction of a leaf.
"use strict";

const SMALL = { width: CARDS.split.width - 2, height: 50 }; // the histogram of a card

/** The condition of a split on one line. */
function conditionText(tree, split) {
  const [terms, nLeftOut, rightSide] = tree.conditions[split];
  const leftOut = nLeftOut ? ` (+ ${plural(nLeftOut, "smaller term")})` : "";
  return `${terms.map(termText).join(" ")}${leftOut} ${relationText(rightSide)}`.trim();
}

/** "- 1.1e-5*width" as "− 1.1e−5·width", without a line break after the sign or in the weight. */
function termText(term) {
  return term
    .replace(/^([+-]) /, (_, sign) => `${minusSign(sign)}${NO_BREAK}`)
    .replace(/^([^\w(]*[\d.e-]+)\*/, (_, weight) => `${weight.replace("e-", "e−")}·`);
}

const NO_BREAK = "\u00a0";

function relationText(rightSide) {
  return rightSide
    .replace(/^>= /, `≥${NO_BREAK}`)
    .replace(/^<= /, `≤${NO_BREAK}`)
    .replace(/(?<=\u00a0)-(?=\d)/, "−");
}

/** The right side of a condition; 0 if it has none, because scores are compared with 0. */
function thresholdText(tree, split) {
  return relationText(tree.conditions[split][2]).slice(2) || "0";
}

/** The prediction of a leaf as text: "Adelie", "12.4", "a, b"; of a linear leaf, its equations. */
function leafText(tree, leaf) {
  return tree.equations
    ? tree.equations[leaf].join("; ")
    : predictionText(tree, leafValues(tree, leaf));
}

function leafValues(tree, leaf) {
  return tree.values.subarray(leaf * tree.nOutputs, (leaf + 1) * tree.nOutputs);
}

/** A prediction as short text. `of` is a tree, or the model. */
function predictionText(of, outputs) {
  const { task } = of;
  if (task === "classification") return model.outputs[predictedClass(outputs)];
  if (scoresClasses(of)) return `highest score: ${model.outputs[largestAt(outputs)]}`;
  if (task === "multilabel") return labelsText(outputs);
  if (outputs.length === 1) return valueText(outputs[0], 0);
  const shown = [...outputs.slice(0, 3)].map(
    (value, o) => `${model.outputs[o]} ${valueText(value, o)}`,
  );
  return shown.join(", ") + (outputs.length > 3 ? ", …" : "");
}

/** Whether a tree has scores for classes, which the forest adds up. */
function scoresClasses(of) {
  return of.task === "regression" && model.task === "classification";
}

function labelsText(shares) {
  const predicted = model.outputs.filter((_, o) => shares[o] >= 0.5);
  if (predicted.length === 0) return "no label";
  return predicted.slice(0, 4).join(", ") + (predicted.length > 4 ? ` + ${predicted.length - 4}` : "");
}

/** A predicted number, with enough digits to distinguish leaves. */
function valueText(value, output) {
  const { low, high } = model.colors;
  const spread =
    output < low.length && model.task === "regression" ? high[output] - low[output] : Infinity;
  return modelText(value, spread);
}

/** The probability of a leaf's class, if it has one. */
function leafShareText(tree, leaf) {
  if (tree.task !== "classification" || tree.equations) return "";
  const outputs = leafValues(tree, leaf);
  return probabilityText(outputs[predictedClass(outputs)]);
}

/** The description of a node, for screen readers. */
function nodeWords(tree, node) {
  const count = rowCount(tree, node, model);
  const rows = count === null ? "" : `, ${plural(count, "row")}`;
  const side = node === 0 ? "" : sideOf(tree, node) === "yes" ? "Yes: " : "No: ";
  if (isLeaf(tree, node)) {
    const leaf = node - tree.nSplits;
    const share = leafShareText(tree, leaf);
    return `${side}leaf, ${leafText(tree, leaf)}${share && `, ${share}`}${rows}`;
  }
  return `${side}split, ${conditionText(tree, node)}${rows}`;
}

/** Create the card of a node, or a colored box if it would be too small to read. */
function makeCard(tree, node, isReadable) {
  const kind = isLeaf(tree, node) ? "leaf" : "split";
  const card = element("div", {
    class: `card ${kind}`,
    id: `node-${node}`,
    "data-node": node,
    role: "treeitem",
    tabindex: -1,
    "aria-level": tree.depth[node] + 1,
    "aria-setsize": node ? 2 : 1,
    "aria-posinset": node && sideOf(tree, node) === "yes" ? 2 : 1,
    "aria-label": nodeWords(tree, node),
  });
  if (kind === "leaf") {
    paintLeaf(tree, node - tree.nSplits, card);
    if (isReadable) card.append(...leafParts(tree, node));
  } else if (isReadable) {
    card.append(...splitParts(tree, node));
  }
  return card;
}

function splitParts(tree, split) {
  const [terms, nLeftOut, rightSide] = tree.conditions[split];
  const title = conditionTitle(tree, split);
  const lines = terms.map((term) => element("p", { class: "term", text: termText(term), title }));
  const more = element("span", { class: "quiet", text: nLeftOut ? `+ ${nLeftOut} more` : "" });
  const relation = element("b", { text: relationText(rightSide) });
  const parts = [
    ...lines,
    element("p", { class: "relation" }, more, relation, countNote(tree, split)),
  ];
  const bins = splitBins(tree, split);
  if (bins) parts.push(smallHistogram(tree, split, bins));
  return parts;
}

function smallHistogram(tree, split, bins) {
  const { width, height } = SMALL;
  const chart = svgElement("svg", { width, height, class: "small-chart", "aria-hidden": "true" });
  chart.append(...binShapes(tree, split, bins, width, height));
  chart.append(scoreLine(bins, 0, width, height, "threshold"));
  return chart;
}

function countNote(tree, node) {
  const count = rowCount(tree, node, model);
  return element("span", { class: "count", text: count === null ? "" : `n = ${countText(count)}` });
}

function leafParts(tree, node) {
  const leaf = node - tree.nSplits;
  if (tree.scorecards) return scorecardParts(tree, node);
  const facts = element("p", { class: "facts" });
  const share = leafShareText(tree, leaf);
  if (share) facts.append(element("span", { text: share }));
  facts.append(countNote(tree, node));
  const title = leafText(tree, leaf);
  return [
    element("p", { class: "prediction", text: shortPrediction(tree, leaf), title }),
    facts,
    leafStrip(tree, node),
  ];
}

/** A leaf with one equation: what it predicts, and its largest terms. */
function scorecardParts(tree, node) {
  const leaf = node - tree.nSplits;
  const [what, terms, nLeftOut] = tree.scorecards[leaf];
  const equation = leafText(tree, leaf);
  // Not "≈": above the terms, it would look like the constant of a sum.
  const mean = hasGroups() || tree.task === "multilabel" ? "" : `mean ${meanText(tree, leaf)}`;
  const heading = [mean, what].filter(Boolean).join(" of ");
  const more = nLeftOut ? `+ ${nLeftOut} more` : "";
  return [
    element("p", { class: "prediction", text: heading, title: equation }),
    ...terms.map((term) => element("p", { class: "term", text: termText(term), title: equation })),
    element("p", { class: "facts quiet" }, element("span", { text: more }), countNote(tree, node)),
    leafStrip(tree, node),
  ];
}

/** A prediction for a card; of several numbers, the one that determines the color. */
function shortPrediction(tree, leaf) {
  if (tree.equations) return hasGroups() ? "linear" : `linear, mean ${meanText(tree, leaf)}`;
  if (scoresClasses(tree)) return model.outputs[largestAt(leafValues(tree, leaf))];
  if (tree.task !== "regression" || tree.nOutputs === 1) return leafText(tree, leaf);
  const output = state.shade;
  return `${model.outputs[output]} ${valueText(leafValues(tree, leaf)[output], output)}`;
}

/** The typical prediction of a linear leaf, for the output that determines the color. */
function meanText(tree, leaf) {
  return valueText(meanOutputs(tree)[tree.nSplits + leaf], state.shade);
}

/** The strip at the bottom of a leaf: rows by class, histogram of true values, or labels. */
function leafStrip(tree, node) {
  const [width, height] = [nodeSize(tree, node, CARDS).width - 2, hasGroups() ? 14 : 30];
  const strip = svgElement("svg", { width, height, class: "strip", "aria-hidden": "true" });
  const leaf = node - tree.nSplits;
  if (hasGroups()) strip.append(...classStrip(tree, node, width, height));
  else if (tree.task === "multilabel")
    strip.append(...labelBars(linked(leafValues(tree, leaf), tree.link), width, height));
  else if (tree.histograms?.leafTargets)
    strip.append(...targetBars(tree, leaf, state.shade, width, height));
  return strip;
}

/** A bar for the probability of each label. */
function labelBars(shares, width, height) {
  const step = width / shares.length;
  return [...shares].map((share, o) =>
    svgElement("rect", {
      x: round(o * step),
      y: round(height * (1 - share)),
      width: round(Math.max(step - 1, 0.5)),
      height: round(height * share),
      class: share >= 0.5 ? "likely" : "unlikely",
    }),
  );
}

function classStrip(tree, node, width, height) {
  const total = rowCount(tree, node, model);
  if (!total || !tree.knowsClasses) return [];
  let x = 0;
  return [...groupsAt(tree, node, model)].map((count, g) => {
    const wide = (width * count) / total;
    const part = { x: round(x), width: round(wide), height, class: groupClass(g) };
    x += wide;
    return svgElement("rect", part);
  });
}

/** Rows of a leaf by their true number, on the scale of the colors. */
function targetBars(tree, leaf, output, width, height) {
  const outputs = model.colors.low.length;
  const offset = (leaf * outputs + output) * model.bins;
  const counts = tree.histograms.leafTargets.subarray(offset, offset + model.bins);
  const largest = counts.reduce((a, b) => Math.max(a, b), 1);
  const step = width / model.bins;
  return [...counts].flatMap((count, b) => {
    if (count === 0) return [];
    const tall = Math.max((height * count) / largest, 1);
    const bar = svgElement("rect", {
      x: round(b * step),
      y: round(height - tall),
      width: round(Math.max(step - 0.5, 0.5)),
      height: round(tall),
    });
    bar.style.fill = shadeColor((b + 0.5) / model.bins);
    return [bar];
  });
}
