// Terms of the weighted sums in splits and linear leaves.
"use strict";

/**
 * Columns with a weight, the most important first.
 *
 * @param weights - the engine's weights; those of all columns start at `offset`
 * @returns for each its `weight` per unit of the table (per day for dates and durations), and its
 *   `push`: the effect of one standard deviation of the column on the sum
 */
function weighedColumns(weights, offset, scale = 1) {
  const terms = [];
  model.columns.forEach(({ feature, kind }, column) => {
    const factor = kind === "number" ? model.features[feature].factor : 1;
    const weight = weights[offset + column] * scale * factor;
    if (weight === 0) return;
    const unit = kind === "number" && isTime(feature) ? DAY : 1;
    terms.push({ column, weight: weight * unit, push: weight * model.spread[column] });
  });
  return terms.sort((a, b) => Math.abs(b.push) - Math.abs(a.push));
}

function splitTerms(tree, split) {
  return weighedColumns(tree.weights, split * tree.nColumns, 2 ** tree.exponent[split]);
}

/** Terms of one output of a linear leaf; of the second of two classes, less those of the first. */
function leafTerms(tree, leaf, output) {
  const rowOf = (o) => {
    const start = (leaf * tree.nOutputs + o) * tree.nColumns;
    return tree.leafWeights.slice(start, start + tree.nColumns);
  };
  const own = rowOf(output);
  const isOfTwo = tree.task === "classification" && tree.nOutputs === 2 && output === 1;
  const first = isOfTwo ? rowOf(0) : null;
  return weighedColumns(first ? own.map((weight, c) => weight - first[c]) : own, 0);
}

/** The weight of a term, with the sign of the condition, per unit and per standard deviation. */
function weightWords(tree, split, { weight, push }) {
  const sign = Math.sign(tree.axes[split][1]);
  const perUnit = `weight ${modelText(sign * weight)}`;
  if (!model.knowsSpread) return perUnit;
  return `${perUnit}, per standard deviation ${numberText(sign * push, 3)}`;
}

/** The condition of a split and, below it, the weights of its sum. */
function conditionTitle(tree, split) {
  const terms = splitTerms(tree, split);
  const lines = terms.map((term) => {
    return `${columnName(model.columns[term.column])}: ${weightWords(tree, split, term)}`;
  });
  return [conditionText(tree, split), ...(terms.length > 1 ? lines : [])].join("\n");
}

/** Whether a feature is a date or a duration, which are in seconds. */
function isTime(feature) {
  return ["date", "duration"].includes(model.features[feature].origin);
}

/** The name of a column. */
function columnName({ feature, kind, level }) {
  const { name } = model.features[feature];
  if (kind === "level") return `${name} is ${level}`;
  if (kind === "missing") return `${name} is missing`;
  return isTime(feature) ? `${name}, per day` : name;
}

/**
 * @returns for each `feature` its `importance` and the number of `splits` that use it, the most
 *   important first
 */
function featureUse() {
  const use = model.features.map((_, feature) => ({
    feature,
    importance: importanceOf(feature),
    splits: 0,
  }));
  for (const tree of model.sizes ? [currentTree()] : model.trees) {
    for (let split = 0; split < tree.nSplits; split++) {
      const weighed = splitTerms(tree, split).map(({ column }) => model.columns[column].feature);
      for (const feature of new Set(weighed)) use[feature].splits += 1;
    }
  }
  return use.sort((a, b) => b.importance - a.importance || b.splits - a.splits);
}

function importanceOf(feature) {
  const { importances } = currentSize();
  return importances ? importances[feature] : model.features[feature].importance;
}

const knownUse = new Map(); // what it is of -> `featureUse`

/** `featureUse`, computed once for the model, or for each size. */
function sortedFeatureUse() {
  const of = currentSize();
  if (!knownUse.has(of)) knownUse.set(of, featureUse());
  return knownUse.get(of);
}

/** Positions of the features, the most used first. */
function featuresByUse() {
  return sortedFeatureUse().map(({ feature }) => feature);
}
