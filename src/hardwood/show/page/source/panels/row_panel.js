// The Row panel: choose or enter a row, and see its path and its prediction.
"use strict";

const FIELDS_AT_FIRST = 40;
let rowPlace = null; // position of the chosen row on the page; null after it was edited by hand

function startRowPanel() {
  byId("row-chooser").hidden = !model.rows?.count;
  if (model.rows) {
    byId("row-number").max = model.rows.count;
    byId("row-count").textContent = `of ${countText(model.rows.count)}`;
  }
  byId("row-number").addEventListener("change", () =>
    chooseRow(Number(byId("row-number").value) - 1),
  );
  byId("row-before").addEventListener("click", () => chooseRow((rowPlace ?? 0) - 1));
  byId("row-after").addEventListener("click", () => chooseRow((rowPlace ?? -1) + 1));
  byId("row-any").addEventListener("click", () =>
    chooseRow(Math.floor(Math.random() * model.rows.count)),
  );
  byId("row-clear").addEventListener("click", () => showRow(null));
  byId("row-start").addEventListener("click", () => showRow(typicalRow()));
  whenever(["prediction", "tree"], drawRowPanel);
  drawRowPanel(new Set(["prediction"]));
}

/** Show the i-th row of the page; after the last row comes the first. */
function chooseRow(i) {
  const count = model.rows.count;
  if (!Number.isInteger(i)) return;
  rowPlace = ((i % count) + count) % count;
  byId("row-number").value = rowPlace + 1;
  showRow(model.rows.at(rowPlace));
  bringPathIntoView();
}

/** A row to start editing from: numbers near their means, first categories. */
function typicalRow() {
  rowPlace = null;
  return Float64Array.from(model.features, ({ levels, center, first }) => {
    if (levels) return 0;
    const step = 10 ** Math.floor(Math.log10(model.spread[first] / 10));
    return step > 0 ? Number((Math.round(center / step) * step).toPrecision(12)) : center;
  });
}

function bringPathIntoView() {
  reveal(currentPathNodes());
  bringIntoView(currentPathNodes());
}

function drawRowPanel(changed) {
  const { prediction } = state;
  byId("row-clear").hidden = !prediction;
  byId("row-start").hidden = Boolean(prediction);
  byId("row-origin").textContent = originText();
  if (changed.has("prediction")) drawFields();
  byId("prediction").replaceChildren(...(prediction ? predictionParts() : []));
  byId("path").replaceChildren(...(prediction ? pathItems(currentPath()) : []));
  byId("path-part").hidden = !prediction;
  describePrediction(prediction);
}

function originText() {
  if (!state.prediction) return "";
  if (rowPlace === null) return "Edit the values below to change this row.";
  const truth = trueTarget(rowPlace);
  const number = `Row ${model.rows.number[rowPlace]} of the table, counting from 0`;
  return truth ? `${number}. True ${hasGroups() ? "class" : "value"}: ${truth}` : number;
}

/** The true target of a row, as text; empty if unknown. */
function trueTarget(place) {
  const { truth } = model.rows;
  if (!truth) return "";
  if (hasGroups()) return model.outputs[truth[place]];
  const k = model.outputs.length;
  return predictionText(model, truth.slice(place * k, (place + 1) * k));
}

/** Store the exact prediction where programs and tests can read it. */
function describePrediction(prediction) {
  const { dataset } = byId("prediction");
  const trees = model.combine === null ? [currentPath()] : prediction?.trees;
  dataset.outputs = prediction ? JSON.stringify([...currentOutputs()]) : "";
  dataset.leaves = prediction ? JSON.stringify(trees.map(({ leaf }) => leaf)) : "";
}

// Fields

/** Create the fields for all features, or update their values. */
function drawFields() {
  const fields = byId("fields");
  fields.hidden = !state.prediction;
  if (!state.prediction) return;
  if (fields.childElementCount === 0) fillFields(fields);
  for (const field of fields.querySelectorAll("[data-feature]")) {
    if (field !== document.activeElement) setField(field, state.prediction.row[field.dataset.feature]);
  }
}

function fillFields(fields) {
  const all = featuresByUse().map((f) => fieldOf(f));
  fields.append(...all.slice(0, FIELDS_AT_FIRST));
  if (all.length > FIELDS_AT_FIRST) {
    fields.append(moreButton(fields, all, FIELDS_AT_FIRST, drawFields));
  }
}

function fieldOf(f) {
  const feature = model.features[f];
  const id = `field-${f}`;
  const field = feature.levels ? levelField(feature) : numberField(feature);
  field.id = id;
  field.dataset.feature = f;
  field.addEventListener("input", () => typeField(field));
  return element("label", { class: "field", for: id }, nameElement(feature.name), field);
}

function levelField(feature) {
  const options = feature.levels.map((level, i) => element("option", { value: i, text: level }));
  return element(
    "select",
    {},
    ...options,
    element("option", { value: "", text: "(missing or other)" }),
  );
}

function numberField(feature) {
  if (feature.origin === "boolean") {
    const option = (value, text) => element("option", { value, text });
    return element("select", {}, option(0, "false"), option(1, "true"), option("", "(missing)"));
  }
  const hint = { date: "2024-05-31 12:00", duration: "seconds" }[feature.origin] ?? "missing";
  return element("input", {
    type: "text",
    inputmode: feature.origin === "date" ? "text" : "decimal",
    placeholder: hint,
    autocomplete: "off",
    spellcheck: "false",
  });
}

function setField(field, value) {
  field.removeAttribute("aria-invalid");
  const { origin, levels } = model.features[field.dataset.feature];
  if (Number.isNaN(value)) field.value = "";
  else if (levels || origin !== "date") field.value = String(value);
  else field.value = dateText(value);
}

/** Use the entered value, if it is a number; an empty field is a missing value. */
function typeField(field) {
  const value = fieldValue(field);
  field.toggleAttribute("aria-invalid", value === null);
  if (value === null) return;
  const row = state.prediction.row.slice();
  row[field.dataset.feature] = value;
  rowPlace = null;
  showRow(row);
  bringPathIntoView();
}

function fieldValue(field) {
  const text = field.value.trim();
  if (text === "") return NaN;
  const isDate = model.features[field.dataset.feature].origin === "date";
  const value = isDate ? Date.parse(isoDate(text)) / 1000 : Number(text.replace("−", "-"));
  return Number.isFinite(value) ? value : null;
}

/** Dates without a zone are in UTC, as in the library. */
function isoDate(text) {
  const [date, time = "00:00"] = text.split(/[ T]/);
  return `${date}T${time.replace(/Z$/, "")}Z`;
}

// The prediction

function predictionParts() {
  const outputs = currentOutputs();
  const parts = [
    quietText(model.combine ? "The forest predicts" : "The tree predicts"),
    element("p", { class: "prediction", text: predictionText(model, outputs) }),
  ];
  const isPlain = model.task === "regression" && outputs.length === 1;
  if (!isPlain) parts.push(...outputTable(model, outputs));
  if (model.combine) parts.push(quietText(`Tree ${state.tree + 1} predicts: ${ownPrediction()}`));
  return parts;
}

/** The prediction of the drawn tree alone. */
function ownPrediction() {
  return predictionText(currentTree(), currentPath().outputs);
}

/** The splits on the row's path, and the leaf. */
function pathItems(path) {
  const tree = currentTree();
  const items = path.steps.map(({ node, score, goesRight }) =>
    pathItem(tree, node, score, goesRight),
  );
  const leaf = button(`Leaf: ${ownPrediction()}`, () => selectNode(path.node), {
    class: "link step-title",
  });
  return [...items, element("li", { class: "leaf-step" }, leaf)];
}

function pathItem(tree, node, score, goesRight) {
  const title = button(conditionText(tree, node), () => selectNode(node), {
    class: "link step-title",
  });
  const what = tree.conditions[node][2] ? "left side" : "score";
  const side = goesRight ? "yes" : "no";
  const text = lacksFeature(tree, node)
    ? `missing → ${side}`
    : `${what} = ${axisText(tree, node, score)} → ${side}${marginText(tree, node, score)}`;
  return element(
    "li",
    { class: goesRight ? "yes" : "no" },
    title,
    element("span", { class: "quiet", text }),
  );
}

/** Whether a split is on one feature, which the row lacks. */
function lacksFeature(tree, split) {
  const terms = splitTerms(tree, split);
  const [feature, ...others] = new Set(terms.map(({ column }) => model.columns[column].feature));
  return others.length === 0 && Number.isNaN(state.prediction.row[feature]);
}

/** A note for scores close to the threshold, where small changes switch the side. */
function marginText(tree, node, score) {
  if (score === 0) return ", exactly on the threshold";
  const width = tree.histograms?.width[node];
  return width && Math.abs(score) < width / 4 ? ", close to the threshold" : "";
}
