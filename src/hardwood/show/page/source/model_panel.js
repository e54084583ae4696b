// The panel about the model: its sizes, the features it uses, the trees of a forest.
"use strict";

const FEATURES_AT_FIRST = 15;
const TREES_AT_FIRST = 50;

/**
 * How much each feature is used, (features): every split divides one vote among its features, by
 * what a standard deviation of theirs moves the score by; votes count by the rows at the split.
 */
function featureUse() {
  const use = model.features.map((_, f) => ({ feature: f, share: 0, splits: 0 }));
  for (const tree of model.trees) {
    const ofTree = treeUse(tree);
    const total = ofTree.votes.reduce((a, b) => a + b, 0) || 1;
    use.forEach((entry, f) => {
      entry.share += ofTree.votes[f] / total / model.trees.length;
      entry.splits += ofTree.splits[f];
    });
  }
  return use;
}

function treeUse(tree) {
  const votes = new Float64Array(model.features.length);
  const splits = new Int32Array(model.features.length);
  for (let split = 0; split < tree.nSplits; split++) {
    const pushes = splitPushes(tree, split);
    const total = pushes.reduce((a, b) => a + b, 0);
    const rows = tree.counts ? tree.counts[split] : 1;
    pushes.forEach((push, f) => {
      if (push === 0) return;
      splits[f] += 1;
      votes[f] += (rows * push) / total;
    });
  }
  return { votes, splits };
}

/** What a standard deviation of each feature moves the score of a split by, (features). */
function splitPushes(tree, split) {
  const pushes = new Float64Array(model.features.length);
  model.columns.forEach(({ feature, kind }, column) => {
    const factor = kind === "number" ? model.features[feature].factor : 1;
    const weight = factor * tree.weights[split * tree.nColumns + column];
    pushes[feature] += Math.abs(weight) * model.spread[column];
  });
  return pushes;
}

let sortedUse = null;

/** Features, the most used first. */
function sortedFeatureUse() {
  sortedUse ??= featureUse().sort((a, b) => b.share - a.share || b.splits - a.splits);
  return sortedUse;
}

function featuresByUse() {
  return sortedFeatureUse().map(({ feature }) => feature);
}

function drawModelPanel() {
  const parts = [element("p", { text: `${model.summary}.` }), section("Feature use", ...useTable())];
  if (model.trees.length > 1) parts.push(section("Trees", ...treeTable()));
  parts.push(section("About this page", ...aboutParts()));
  byId("panel-model").replaceChildren(...parts);
}

function useTable() {
  const use = sortedFeatureUse();
  const parts = [];
  if (use.length === 0) {
    parts.push(element("p", { class: "quiet", text: "The model uses no feature." }));
  } else {
    const largest = use[0].share || 1;
    const rows = use.map(({ feature, share, splits }) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, searchButton(feature)),
        element("td", { class: "bars" }, plainBar(share / largest)),
        element("td", { class: "figure", text: shareText(share), title: plural(splits, "split") }),
      ),
    );
    const body = element("tbody", {}, ...rows.slice(0, FEATURES_AT_FIRST));
    parts.push(element("table", { class: "output-table" }, body));
    if (rows.length > FEATURES_AT_FIRST) parts.push(moreButton(body, rows, FEATURES_AT_FIRST));
  }
  const { count, names } = model.unused;
  if (count) parts.push(element("p", { class: "quiet", text: unusedText(count, names) }));
  return parts;
}

function unusedText(count, names) {
  const more = count > names.length ? ` and ${count - names.length} more` : "";
  return `Not used: ${names.join(", ")}${more}.`;
}

function searchButton(feature) {
  const { name } = model.features[feature];
  return button("", () => searchFor(feature), { class: "link", title: `Find the splits that use ${name}` })
    .appendChild(nameElement(name)).parentElement;
}

function treeTable() {
  const head = ["tree", "depth", "splits", "leaves"];
  const rows = model.trees.map((tree, t) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, button(`Tree ${t + 1}`, () => change({ tree: t }), { class: "link" })),
      ...[tree.maxDepth, tree.nSplits, tree.nLeaves].map((n) => element("td", { class: "figure", text: n })),
    ),
  );
  const body = element("tbody", {}, ...rows.slice(0, TREES_AT_FIRST));
  const table = element(
    "table",
    { class: "tree-table" },
    element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { text, scope: "col" })))),
    body,
  );
  return rows.length > TREES_AT_FIRST ? [table, moreButton(body, rows, TREES_AT_FIRST)] : [table];
}

function aboutParts() {
  const sentences = [];
  if (model.rows) {
    const { inTable, counted, count } = model.rows;
    const drawn = counted < inTable ? `${countText(counted)} rows drawn at random from ` : "";
    sentences.push(`Histograms and streams count ${drawn}${plural(inTable, "row")} of a table.`);
    if (count) sentences.push(`${plural(count, "row")} can be chosen from.`);
  } else {
    sentences.push("Streams count training rows.");
  }
  sentences.push("Nothing is fetched, and nothing leaves this page.");
  const check = element("p", { class: "quiet", id: "check" });
  return [element("p", { class: "quiet", text: sentences.join(" ") }), check];
}

// The page's answers are compared with the library's, which came with the rows.

const SAME = 1e-9; // of a number's size; leaves are the same, sums may differ in the last digit

/** Compare a few rows at a time while nothing else is to be done, and say how it went. */
function checkAnswers() {
  const { rows } = model;
  if (!rows?.count) return;
  let place = 0;
  let different = 0;
  const work = (deadline) => {
    while (place < rows.count && deadline.timeRemaining() > 2) {
      different += Number(!agrees(place));
      place += 1;
    }
    if (place < rows.count) whenIdle(work);
    else reportCheck(different);
  };
  whenIdle(work);
}

function agrees(place) {
  const k = model.outputs.length;
  const { outputs } = answerTo(model, model.rows.at(place));
  return outputs.every((value, o) => {
    const expected = model.rows.outputs[place * k + o];
    return value === expected || Math.abs(value - expected) <= SAME * Math.max(1, Math.abs(expected));
  });
}

function reportCheck(different) {
  const all = plural(model.rows.count, "row");
  const check = byId("check");
  check.dataset.different = different;
  check.textContent = different
    ? `This page and the library differ in ${different} of ${all}: trust the library.`
    : `Checked: this page answers as the library does in ${all === "1 row" ? "1 row" : `all ${all}`}.`;
  check.classList.toggle("warning", different > 0);
}

function whenIdle(work) {
  if (window.requestIdleCallback) window.requestIdleCallback(work);
  else setTimeout(() => work({ timeRemaining: () => 20 }), 30);
}
