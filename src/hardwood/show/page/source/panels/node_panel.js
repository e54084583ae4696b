// The Node panel: the terms of a split and its rows, or the prediction of a leaf.
"use strict";

const TERMS_AT_FIRST = 12;
const OUTPUTS_AT_FIRST = 12;
const EQUATIONS = 4; // outputs of a linear leaf whose terms are shown, as in the library's text

function drawNodePanel() {
  const tree = currentTree();
  const node = state.selected;
  const parts = isLeaf(tree, node) ? leafPanel(tree, node) : splitPanel(tree, node);
  byId("panel-node").replaceChildren(breadcrumbs(tree, node), ...parts);
}

/** The path from the root to the node, each step a link. */
function breadcrumbs(tree, node) {
  const steps = wayTo(tree, node).map((at) => {
    const word = at === 0 ? "root" : sideOf(tree, at);
    const link = button(word, () => selectNode(at), { class: "link", title: nodeWords(tree, at) });
    if (at === node) link.setAttribute("aria-current", "true");
    return element("li", {}, link);
  });
  const list = element("ol", { class: "crumbs" }, ...steps);
  return element("nav", { "aria-label": "path from the root" }, list);
}

// Splits

function splitPanel(tree, split) {
  return [
    element("h2", { class: "condition", text: conditionText(tree, split) }),
    flowSentence(tree, split),
    section("Rows by score", scoreChart(tree, split)),
    section("Weights", ...termTable(tree, split)),
  ];
}

/** Where the rows go, with links to both sides. */
function flowSentence(tree, split) {
  const total = rowCount(tree, split, model);
  const sides = childrenOf(tree, split).map((child, side) => {
    const arrow = side ? "yes →" : "← no";
    const count = rowCount(tree, child, model);
    const share = total ? ` (${shareText(count / total)})` : "";
    const text = count === null ? arrow : `${arrow} ${countText(count)}${share}`;
    return button(text, () => selectNode(child), { class: "link" });
  });
  const words = total === null ? "" : `${plural(total, "row")}${model.rows ? "" : " in training"}`;
  return element("p", { class: "flow" }, element("span", { text: words }), ...sides);
}

function termTable(tree, split) {
  const terms = splitTerms(tree, split);
  if (terms.length === 0) return [quietText("All weights of this split are zero.")];
  const isOnPath = currentPath()?.steps.some(({ node }) => node === split);
  const added = isOnPath ? contributions(model, tree, split, state.prediction.encoded) : null;
  const head = ["column", "← no | yes →", "weight", ...(added ? ["this row"] : [])];
  const rows = termRows(tree, split, terms, added);
  const note =
    "Bars show the effect of one standard deviation of the column on the score" +
    (added ? "; the thin bars, the contribution of the row's value." : ".");
  return [...tableParts("terms-table", head, rows, TERMS_AT_FIRST), quietText(note)];
}

/** Weights and contributions have the signs of the condition; bars point to the side they favor. */
function termRows(tree, split, terms, added) {
  const [, factor] = tree.axes[split];
  const largest = largestSize(terms.map(({ push }) => push));
  const mostAdded = added && largestSize(added);
  return terms.map(({ column, weight, push }) => {
    const what = model.columns[column];
    const bars = [divergingBar(push / largest)];
    const figures = [modelText(Math.sign(factor) * weight)];
    if (added) {
      bars.push(divergingBar(added[column] / mostAdded, "of-row"));
      figures.push(numberText(factor * added[column], 3));
    }
    const isSearched = state.feature === what.feature;
    return barRow(nameElement(columnName(what)), bars, figures, {
      class: isSearched && "found",
      title: weightWords(tree, split, { weight, push }),
    });
  });
}

// Leaves

function leafPanel(tree, node) {
  const leaf = node - tree.nSplits;
  const text = tree.equations ? "a linear function" : leafText(tree, leaf);
  const heading = element("h2", { class: "condition", text });
  const parts = tree.equations ? linearParts(tree, leaf) : constantParts(tree, node);
  return [heading, leafCounts(tree, node), ...parts];
}

function leafCounts(tree, node) {
  const facts = [];
  if (model.rows) facts.push(`${plural(rowCount(tree, node, model), "row")} of the table`);
  if (tree.counts) facts.push(`${plural(tree.counts[node], "row")} in training`);
  return element("p", { class: "flow", text: facts.join(", ") });
}

function constantParts(tree, node) {
  const leaf = node - tree.nSplits;
  const parts = [section(outputsTitle(tree), ...outputTable(tree, leafValues(tree, leaf)))];
  if (!tree.histograms) return parts;
  if (hasGroups()) parts.push(section("Rows by class", ...groupTable(tree, node)));
  else if (tree.task === "regression" && tree.histograms.leafTargets) {
    parts.push(section("True values of the rows", targetChart(tree, leaf)));
  }
  return parts;
}

function outputsTitle(tree) {
  if (tree.task === "classification") return "Probabilities";
  if (tree.task === "multilabel") return "Probability of each label";
  return model.combine === "sum" ? "Scores" : "Values";
}

/** A table row for each output, the most probable classes first. `of` is a tree or the model. */
function outputTable(of, outputs) {
  const order = [...outputs.keys()];
  if (of.task === "classification") order.sort((a, b) => outputs[b] - outputs[a]);
  const largest = largestSize(outputs);
  const rows = order.map((o) => {
    const value = outputs[o];
    const isShare = of.task !== "regression";
    const color = hasGroups() ? groupClass(model.colors.groupOfClass[o]) : "";
    const bar = isShare ? plainBar(value, color) : divergingBar(value / largest);
    const text = isShare ? probabilityText(value) : valueText(value, o);
    return barRow(nameElement(model.outputs[o]), [bar], [text], { title: String(value) });
  });
  return tableParts("output-table", [], rows, OUTPUTS_AT_FIRST);
}

function groupTable(tree, node) {
  const counts = groupsAt(tree, node, model);
  const total = rowCount(tree, node, model) || 1;
  const rows = groupNames().map((name, g) => {
    const bar = plainBar(counts[g] / total, groupClass(g));
    return barRow(nameElement(name), [bar], [countText(counts[g])]);
  });
  return tableParts("output-table", [], rows);
}

/** Equations of a linear leaf, and bars for their terms. */
function linearParts(tree, leaf) {
  const lines = tree.equations[leaf].map((text) => element("p", { class: "equation", text }));
  // Of two classes only the difference of their scores matters: the equation of the second.
  const all = [...model.outputs.keys()];
  const shown = tree.scorecards ? all.slice(-1) : all.slice(0, EQUATIONS);
  const terms = shown.map((output) => {
    const title = tree.nOutputs === 1 ? "Terms" : `Terms of ${model.outputs[output]}`;
    return section(title, ...leafTermTable(tree, leaf, output));
  });
  return [section(lines.length === 1 ? "Equation" : "Equations", ...lines), ...terms];
}

function leafTermTable(tree, leaf, output) {
  const terms = leafTerms(tree, leaf, output);
  if (terms.length === 0) return [quietText("All weights are zero: the prediction is constant.")];
  const isOnPath = currentPath()?.leaf === leaf;
  const largest = largestSize(terms.map(({ push }) => push));
  const rows = terms.map(({ column, weight, push }) => {
    const name = nameElement(columnName(model.columns[column]));
    const figures = [modelText(weight)];
    if (isOnPath) figures.push(numberText(weight * columnValue(column), 3));
    return barRow(name, [divergingBar(push / largest)], figures);
  });
  const head = isOnPath ? ["column", "", "weight", "this row"] : [];
  return tableParts("terms-table", head, rows, TERMS_AT_FIRST);
}

/** What the current row has in a column, in the units of its weight; 0 or 1 for a level. */
function columnValue(column) {
  const { feature, kind } = model.columns[column];
  const { row, encoded } = state.prediction;
  if (kind !== "number") return Number(encoded.on.includes(column));
  const value = Number.isNaN(row[feature]) ? model.features[feature].center : row[feature];
  return isTime(feature) ? value / DAY : value;
}
