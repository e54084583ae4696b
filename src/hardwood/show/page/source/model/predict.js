// The prediction for a row, computed as in the library's engine.
//
// Splits are scored in float32. A number minus its center is multiplied by its weight; the products
// go to sixteen running sums in turn, which are added in a fixed order. If the engine's processor has
// fused multiply-add (`model.fused`), it is used here too. A row therefore reaches the same leaf as
// in the library, bit for bit. Constant leaves have the library's own numbers; linear leaves are
// summed in float64, where the last digit may differ.
"use strict";

const LARGEST_FLOAT = 3.4028234663852886e38;
const RUNNING_SUMS = 16;

const float64 = new Float64Array(1);
const float64Words = new Uint32Array(float64.buffer); // the lower one first

/**
 * a*b + c of float32 numbers, rounded once. The product is exact in float64 but the sum is not. It
 * is rounded to odd (lost bits set the last bit), so that the second rounding, to float32, is
 * correct.
 */
function fusedProductSum(a, b, c) {
  const product = a * b;
  const sum = product + c;
  const virtual = sum - product;
  const lost = product - (sum - virtual) + (c - virtual);
  if (lost === 0 || !Number.isFinite(lost)) return Math.fround(sum);
  return Math.fround(oddNeighbor(sum, lost > 0 === sum > 0));
}

/** A float64 with its last bit set: the number itself, or its neighbor outward or toward zero. */
function oddNeighbor(number, outward) {
  float64[0] = number;
  if (float64Words[0] & 1) return number;
  if (outward) {
    float64Words[0] += 1;
  } else {
    if (float64Words[0] === 0) float64Words[1] -= 1;
    float64Words[0] -= 1; // 0 wraps around
  }
  return float64[0];
}

function roundedProductSum(a, b, c) {
  return Math.fround(Math.fround(a * b) + c);
}

/**
 * An encoded row: `values[column]` of numbers, in float32, and the columns of levels and missing
 * indicators that are `on`, in the engine's order: indicators of numbers first, then categories.
 */
function encodedRow(model, row) {
  const values = new Float32Array(model.columns.length);
  const on = [];
  model.features.forEach((feature, f) => {
    if (feature.levels) return;
    if (Number.isNaN(row[f])) {
      if (feature.flagColumn >= 0) on.push(feature.flagColumn);
      return;
    }
    const value = (row[f] - feature.center) * feature.factor;
    values[feature.first] = Math.min(Math.max(value, -LARGEST_FLOAT), LARGEST_FLOAT);
  });
  model.features.forEach((feature, f) => {
    if (!feature.levels) return;
    const isKnown = row[f] >= 0 && row[f] < feature.levels.length;
    const column = isKnown ? feature.first + row[f] : feature.flagColumn;
    if (column >= 0) on.push(column);
  });
  return { values, on };
}

/** Score of an encoded row at a split, in float32, before scaling by the split's exponent. */
function engineScore(model, tree, split, encoded) {
  const multiplyAdd = model.fused ? fusedProductSum : roundedProductSum;
  const offset = split * tree.nColumns;
  const sums = new Float32Array(RUNNING_SUMS);
  sums[0] = tree.bias[split];
  for (const { slot, first } of model.features) {
    if (slot === undefined) continue; // a category
    const lane = slot % RUNNING_SUMS;
    sums[lane] = multiplyAdd(tree.weights[offset + first], encoded.values[first], sums[lane]);
  }
  const score = folded(sums);
  if (encoded.on.length === 0) return score;
  let indicators = 0;
  for (const column of encoded.on) {
    indicators = Math.fround(indicators + tree.weights[offset + column]);
  }
  return Math.fround(score + indicators);
}

/** Add sixteen float32 sums in the order of the engine's registers. */
function folded(sums) {
  const add = (a, b) => Math.fround(a + b);
  const half = Array.from({ length: 8 }, (_, i) => add(sums[i], sums[i + 8]));
  const quarter = Array.from({ length: 4 }, (_, i) => add(half[i], half[i + 4]));
  return add(add(quarter[0], quarter[2]), add(quarter[1], quarter[3]));
}

/** Path of a row: at each split its score, in the tree's own units, and the side. */
function pathOf(model, tree, encoded) {
  const steps = [];
  let node = 0;
  while (!isLeaf(tree, node)) {
    const score = engineScore(model, tree, node, encoded);
    const goesRight = score >= 0;
    steps.push({ node, score: score * 2 ** tree.exponent[node], goesRight });
    node = tree.children[2 * node + (goesRight ? 1 : 0)];
  }
  return { steps, node, leaf: node - tree.nSplits };
}

/** Outputs of a leaf for a row: (k) probabilities, values, or scores. */
function leafOutputs(model, tree, leaf, encoded) {
  const k = tree.nOutputs;
  const outputs = Float64Array.from(tree.values.subarray(leaf * k, (leaf + 1) * k)); // sums follow
  if (!tree.leafWeights) return outputs;
  for (let o = 0; o < k; o++) {
    const offset = (leaf * k + o) * tree.nColumns;
    let sum = 0;
    for (const { slot, first } of model.features) {
      if (slot !== undefined) sum += tree.leafWeights[offset + first] * encoded.values[first];
    }
    outputs[o] += sum;
    for (const column of encoded.on) outputs[o] += tree.leafWeights[offset + column];
  }
  return linked(outputs, tree.link);
}

/** Apply a link function to scores. */
function linked(scores, link) {
  if (link === "exp") return scores.map(Math.exp);
  if (link === "logistic") return scores.map((score) => 1 / (1 + Math.exp(-score)));
  if (link !== "softmax") return scores;
  const largest = scores.reduce((a, b) => Math.max(a, b));
  const powers = scores.map((score) => Math.exp(score - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / total);
}

/** Path and outputs of each tree for a row; of a forest also the `outputs` of all together. */
function predictionFor(model, row) {
  const encoded = encodedRow(model, row);
  const trees = model.trees.map((tree) => {
    const path = pathOf(model, tree, encoded);
    return { ...path, outputs: leafOutputs(model, tree, path.leaf, encoded) };
  });
  const outputs = model.combine === null ? null : combined(model, trees);
  return { row, encoded, trees, outputs };
}

/** Combine the trees: the mean of their outputs, the shares of their votes, or the sum. */
function combined(model, trees) {
  const total = new Float64Array(model.outputs.length);
  for (const { outputs } of trees) {
    const added = model.combine === "vote" ? votes(model, outputs) : outputs;
    added.forEach((value, o) => (total[o] += value));
  }
  if (model.combine === "sum") return linked(total, model.link);
  return total.map((value) => value / trees.length);
}

function votes(model, outputs) {
  if (model.task === "multilabel") return outputs.map((share) => Number(share >= 0.5));
  const chosen = largestAt(outputs);
  return outputs.map((_, o) => Number(o === chosen));
}

/** Position of the class that the model predicts; decision weights multiply the probabilities. */
function predictedClass(outputs) {
  const weights = currentSize().decisionWeights;
  return largestAt(weights ? outputs.map((share, o) => share * weights[o]) : outputs);
}

/** Position of the largest number, the first one if several tie. */
function largestAt(numbers) {
  let best = 0;
  numbers.forEach((value, i) => {
    if (value > numbers[best]) best = i;
  });
  return best;
}

/** Contributions of the columns to a row's score at a split, in the tree's own units. */
function contributions(model, tree, split, encoded) {
  const scale = 2 ** tree.exponent[split];
  const isOn = new Set(encoded.on);
  return model.columns.map(({ kind }, column) => {
    const weight = tree.weights[split * tree.nColumns + column] * scale;
    return weight * (kind === "number" ? encoded.values[column] : Number(isOn.has(column)));
  });
}
