// The panel about one node: the terms of a split and how rows fall, or the answer of a leaf.
"use strict";

const TERMS_AT_FIRST = 10;

function drawNodePanel() {
  const tree = currentTree();
  const node = state.selected;
  const parts = isLeaf(tree, node) ? leafPanel(tree, node) : splitPanel(tree, node);
  byId("panel-node").replaceChildren(breadcrumbs(tree, node), ...parts);
}

/** The way from the root to the node, each step a link to it. */
function breadcrumbs(tree, node) {
  const steps = wayTo(tree, node).map((at) => {
    const word = at === 0 ? "root" : sideOf(tree, at);
    const link = button(word, () => selectNode(at), { class: "link", title: nodeWords(tree, at) });
    if (at === node) link.setAttribute("aria-current", "true");
    return element("li", {}, link);
  });
  return element("nav", { "aria-label": "way from the root" }, element("ol", { class: "crumbs" }, ...steps));
}

function section(title, ...children) {
  return element("section", {}, element("h3", { text: title }), ...children);
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
    const count = rowCount(tree, child, model);
    const rows = count === null ? "" : ` ${countText(count)}${total ? ` (${shareText(count / total)})` : ""}`;
    return button(`${side ? "yes →" : "← no"}${rows}`, () => selectNode(child), { class: "link" });
  });
  const words = total === null ? "" : `${plural(total, "row")} ${model.rows ? "" : "in training"}`;
  return element("p", { class: "flow" }, element("span", { text: words }), ...sides);
}

/** Terms of a split, largest first: what a standard deviation of the column moves the score by. */
function termsOf(tree, split) {
  const scale = 2 ** tree.exponent[split];
  const sign = Math.sign(tree.axes[split][1]);
  const terms = [];
  model.columns.forEach((column, c) => {
    const weight = tree.weights[split * tree.nColumns + c] * scale;
    if (weight === 0) return;
    const perUnit = (column.kind === "number" ? model.features[column.feature].factor : 1) * weight;
    terms.push({ column: c, push: perUnit * model.spread[c], weight: sign * perUnit });
  });
  return terms.sort((a, b) => Math.abs(b.push) - Math.abs(a.push));
}

function columnName({ feature, kind, level }) {
  const { name } = model.features[feature];
  if (kind === "level") return `${name} is ${level}`;
  return kind === "missing" ? `${name} is missing` : name;
}

function termTable(tree, split) {
  const terms = termsOf(tree, split);
  if (terms.length === 0) return [element("p", { class: "quiet", text: "No column has a weight." })];
  const step = currentPath()?.steps.find(({ node }) => node === split);
  const added = step ? contributions(model, tree, split, state.answer.encoded) : null;
  const head = ["column", "← no | yes →", "weight", ...(added ? ["this row"] : [])];
  const table = element(
    "table",
    { class: "terms-table" },
    element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { text, scope: "col" })))),
  );
  const body = element("tbody");
  table.append(body);
  const rows = termRows(tree, split, terms, added);
  body.append(...rows.slice(0, TERMS_AT_FIRST));
  const note =
    "A bar is what one standard deviation of its column moves the score by" +
    (added ? "; the thin one below it, what the row's own entry adds." : ".");
  const parts = [table, element("p", { class: "quiet", text: note })];
  if (rows.length > TERMS_AT_FIRST) parts.splice(1, 0, moreButton(body, rows, TERMS_AT_FIRST));
  return parts;
}

/** A button that shows the rest of a list. */
function moreButton(list, items, nShown) {
  const more = button(`Show all ${items.length}`, () => {
    list.append(...items.slice(nShown));
    more.remove();
  }, { class: "link" });
  return more;
}

function termRows(tree, split, terms, added) {
  const largest = Math.abs(terms[0].push) || 1;
  const mostAdded = added ? added.reduce((most, a) => Math.max(most, Math.abs(a)), 0) || 1 : 1;
  const [, factor] = tree.axes[split];
  return terms.map(({ column, push, weight }) => {
    const what = model.columns[column];
    const isSearched = state.feature === what.feature;
    const bars = [divergingBar(push / largest)];
    const figures = [numberText(weight, 3)];
    if (added) {
      bars.push(divergingBar(added[column] / mostAdded, "of-row"));
      figures.push(numberText(factor * added[column], 3));
    }
    return element(
      "tr",
      { class: isSearched ? "found" : null },
      element("th", { scope: "row" }, nameElement(columnName(what))),
      element("td", { class: "bars" }, ...bars),
      ...figures.map((text) => element("td", { class: "figure", text })),
    );
  });
}

// Leaves

function leafPanel(tree, node) {
  const leaf = node - tree.nSplits;
  const heading = element("h2", { class: "condition", text: leafText(tree, leaf) });
  return [heading, leafCounts(tree, node), ...leafDistribution(tree, node)];
}

function leafCounts(tree, node) {
  const count = rowCount(tree, node, model);
  const facts = [];
  if (count !== null && model.rows) facts.push(`${plural(count, "row")} of the table`);
  if (tree.counts) facts.push(`${plural(tree.counts[node], "row")} in training`);
  return element("p", { class: "flow", text: facts.join(", ") });
}

function leafDistribution(tree, node) {
  const leaf = node - tree.nSplits;
  if (tree.equations) return [section("Equations", ...equationList(tree, leaf)), ...leafTermSections(tree, leaf)];
  const parts = [section(distributionTitle(tree), outputTable(tree, leafValues(tree, leaf)))];
  if (hasGroups() && tree.histograms) parts.push(section("Rows by class", groupTable(tree, node)));
  if (tree.task === "regression" && tree.histograms?.leafTargets) parts.push(section("True values of the rows", targetChart(tree, leaf)));
  return parts;
}

function distributionTitle(tree) {
  if (tree.task === "classification") return "Probabilities";
  if (tree.task === "multilabel") return "Probability of each label";
  return model.combine === "sum" ? "Scores" : "Values";
}

const OUTPUTS_AT_FIRST = 12;

/** A row for each class, label or number; the most probable classes first. `of`: tree or model. */
function outputTable(of, outputs) {
  const order = [...outputs.keys()];
  if (of.task === "classification") order.sort((a, b) => outputs[b] - outputs[a]);
  const largest = outputs.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  const rows = order.map((o) => outputRow(of, o, outputs[o], largest));
  const body = element("tbody", {}, ...rows.slice(0, OUTPUTS_AT_FIRST));
  const table = element("table", { class: "output-table" }, body);
  if (rows.length <= OUTPUTS_AT_FIRST) return table;
  return element("div", {}, table, moreButton(body, rows, OUTPUTS_AT_FIRST));
}

function outputRow({ task }, output, value, largest) {
  const isShare = task !== "regression";
  const paint = (bar) => {
    if (hasGroups()) bar.classList.add(groupClass(model.colours.groupOfClass[output]));
  };
  const bar = isShare ? plainBar(value, paint) : divergingBar(value / largest);
  const text = isShare ? shareText(value) : valueText(value, output);
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, nameElement(model.outputs[output])),
    element("td", { class: "bars" }, bar),
    element("td", { class: "figure", text, title: String(value) }),
  );
}

function groupTable(tree, node) {
  const counts = groupsAt(tree, node, model);
  const total = rowCount(tree, node, model) || 1;
  const rows = groupNames().map((name, g) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, nameElement(name)),
      element("td", { class: "bars" }, plainBar(counts[g] / total, (bar) => bar.classList.add(groupClass(g)))),
      element("td", { class: "figure", text: countText(counts[g]) }),
    ),
  );
  return element("table", { class: "output-table" }, element("tbody", {}, ...rows));
}

/** The true numbers at a leaf as a histogram, with the leaf's own value on it. */
function targetChart(tree, leaf) {
  const [width, height] = [360, 90];
  const output = state.shade;
  const chart = svgElement("svg", {
    viewBox: `0 0 ${width} ${height + 20}`,
    class: "score-chart",
    role: "img",
    "aria-label": "Histogram of the true values of the rows at this leaf",
  });
  chart.append(...targetBars(tree, leaf, output, width, height));
  chart.append(svgElement("path", { d: `M0 ${height}h${width}`, class: "baseline" }));
  const place = Math.min(Math.max(shareOnScale(meanOutputs(tree)[tree.nSplits + leaf]), 0), 1);
  chart.append(svgElement("path", { d: `M${round(place * width)} 0v${height}`, class: "threshold" }));
  const { low, high } = model.colours;
  const label = (x, anchor, value) =>
    svgElement("text", { x, y: height + 16, "text-anchor": anchor, class: "quiet-tick", text: valueText(value, output) });
  chart.append(label(0, "start", low[output]), label(width, "end", high[output]));
  return chart;
}

// Linear leaves

function equationList(tree, leaf) {
  return tree.equations[leaf].map((equation) => element("p", { class: "equation", text: equation }));
}

/** Bars for the terms of a linear leaf, output by output. */
function leafTermSections(tree, leaf) {
  const names = model.outputs.slice(0, 4);
  return names.map((name, o) => {
    const offset = (leaf * tree.nOutputs + o) * tree.nColumns;
    const terms = [];
    model.columns.forEach((column, c) => {
      const factor = column.kind === "number" ? model.features[column.feature].factor : 1;
      const weight = factor * tree.leafWeights[offset + c];
      if (weight !== 0) terms.push({ column, weight, push: weight * model.spread[c] });
    });
    terms.sort((a, b) => Math.abs(b.push) - Math.abs(a.push));
    const largest = Math.abs(terms[0]?.push) || 1;
    const rows = terms.slice(0, TERMS_AT_FIRST).map(({ column, weight, push }) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, nameElement(columnName(column))),
        element("td", { class: "bars" }, divergingBar(push / largest)),
        element("td", { class: "figure", text: numberText(weight, 3) }),
      ),
    );
    const title = names.length === 1 ? "Terms" : `Terms of ${name}`;
    return section(title, element("table", { class: "terms-table" }, element("tbody", {}, ...rows)));
  });
}
