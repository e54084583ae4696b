// The Model panel: the model's size, the features it uses, the trees of a forest.
"use strict";

const FEATURES_AT_FIRST = 15;
const TREES_AT_FIRST = 50;
const SIZES_AT_FIRST = 30;

function drawModelPanel() {
  const parts = [
    element("p", { text: `${currentSize().summary}.` }),
    section("Feature use", ...useTable()),
  ];
  if (model.sizes) parts.push(section("Sizes", ...sizeTable()));
  else if (model.trees.length > 1) parts.push(section("Trees", ...treeTable()));
  parts.push(section("About this page", ...aboutParts()));
  byId("panel-model").replaceChildren(...parts);
  fillCheck();
}

function useTable() {
  const use = sortedFeatureUse().filter(({ importance }) => importance > 0 || !model.sizes);
  const largest = use[0]?.importance || 1;
  const rows = use.map(({ feature, importance, splits }) =>
    barRow(searchLink(feature), [plainBar(importance / largest)], [shareText(importance)], {
      title: `in ${plural(splits, "split")}`,
    }),
  );
  const parts = rows.length
    ? tableParts("output-table", [], rows, FEATURES_AT_FIRST)
    : [quietText("The model uses no feature.")];
  const { count, names } = unusedFeatures(use);
  const more = count > names.length ? ` and ${count - names.length} more` : "";
  return count ? [...parts, quietText(`Not used: ${names.join(", ")}${more}.`)] : parts;
}

/** Features that no tree of the page uses, and those that only trees of other sizes use. */
function unusedFeatures(use) {
  const used = new Set(use.map(({ feature }) => feature));
  const others = model.features.filter((_, f) => !used.has(f)).map(({ name }) => name);
  const { count, names } = model.unused;
  return { count: count + others.length, names: [...others, ...names] };
}

/** The name of a feature, as a link that searches for the splits that use it. */
function searchLink(feature) {
  const { name } = model.features[feature];
  const link = button("", () => searchFor(feature), { class: "link" });
  link.append(nameElement(name));
  return link;
}

function treeTable() {
  const rows = model.trees.map((tree, t) => {
    const link = button(`Tree ${t + 1}`, () => change({ tree: t }), { class: "link" });
    const sizes = [tree.maxDepth, tree.nSplits, tree.nLeaves];
    const cells = sizes.map((text) => element("td", { class: "figure", text }));
    return element("tr", {}, element("th", { scope: "row" }, link), ...cells);
  });
  return tableParts("tree-table", ["tree", "depth", "splits", "leaves"], rows, TREES_AT_FIRST);
}

/** The sizes in order, as links. */
function sizeTable() {
  const rows = model.sizes.points.map((size, t) => {
    const options = { class: "link", "aria-label": size.words };
    const link = button(size.leaves, () => change({ tree: t }), options);
    if (t === state.tree) link.setAttribute("aria-current", "true");
    const cells = [size.terms, size.numbers, size.lossText, size.aboveText].map((text) =>
      element("td", { class: "figure", text }),
    );
    return element("tr", {}, element("th", { scope: "row" }, link), ...cells);
  });
  const head = ["leaves", "terms", "numbers", "loss", "above the best"];
  const note = `The loss is the ${model.sizes.metric} on held-out rows.`;
  return [...tableParts("size-table", head, rows, SIZES_AT_FIRST), quietText(note)];
}

function aboutParts() {
  const sentences = [];
  if (model.rows) {
    const { inTable, counted, count } = model.rows;
    const drawn = counted < inTable ? `${countText(counted)} rows drawn at random from ` : "";
    sentences.push(`Histograms and streams count ${drawn}${plural(inTable, "row")} of a table.`);
    if (count) sentences.push(`The Row tab contains ${plural(count, "row")}.`);
  } else {
    sentences.push("Streams count training rows.");
  }
  sentences.push("This page makes no network requests.");
  return [quietText(sentences.join(" ")), element("p", { class: "quiet", id: "check" })];
}

// The page's predictions are compared with the library's, which are stored with the rows.

const SAME = 1e-9; // relative; leaves are identical, but sums may differ in the last digit

/** Compare a few rows at a time while the browser is idle, and report the result. */
function checkPredictions() {
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
  const { trees, outputs } = predictionFor(model, model.rows.at(place));
  if (!model.sizes) return areSame(outputs ?? trees[0].outputs, model.rows.outputs, place);
  return trees.every((tree, t) => areSame(tree.outputs, model.sizes.points[t].outputs, place));
}

/** Whether outputs are those of the library, which has them for all rows. */
function areSame(outputs, ofRows, place) {
  return outputs.every((value, o) => {
    const expected = ofRows[place * outputs.length + o];
    return (
      value === expected || Math.abs(value - expected) <= SAME * Math.max(1, Math.abs(expected))
    );
  });
}

let nDifferent = null; // rows; null until all were compared

function reportCheck(different) {
  nDifferent = different;
  fillCheck();
}

function fillCheck() {
  if (nDifferent === null) return;
  const different = nDifferent;
  const all = plural(model.rows.count, "row");
  const check = byId("check");
  check.dataset.different = different;
  check.textContent = different
    ? `The predictions of this page and of the library differ for ${different} of ${all}. Use the library.`
    : `Checked against the library: the predictions agree for all ${all}.`;
  check.classList.toggle("warning", different > 0);
}

function whenIdle(work) {
  if (window.requestIdleCallback) window.requestIdleCallback(work);
  else setTimeout(() => work({ timeRemaining: () => 20 }), 30);
}
