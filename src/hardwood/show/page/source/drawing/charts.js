// Histograms and bars.
"use strict";

/**
 * The histogram of a split's scores: counts by bin and color, totals by bin, the largest total, and
 * the position of the threshold. Null if no rows were given, or none reach the split.
 */
function splitBins(tree, split) {
  if (!tree.histograms || rowCount(tree, split, model) === 0) return null;
  const { bins } = model;
  const groups = model.colors.groups;
  const counts = tree.histograms.counts.slice(split * bins * groups, (split + 1) * bins * groups);
  const totals = Array.from({ length: bins }, (_, b) =>
    counts.subarray(b * groups, (b + 1) * groups).reduce((a, c) => a + c, 0),
  );
  return {
    counts,
    totals,
    largest: Math.max(...totals),
    zero: tree.histograms.zero[split],
    width: tree.histograms.width[split],
  };
}

/** The position of a score between the left (0) and right end (1) of a split's histogram. */
function placeOfScore(bins, score) {
  const place = (score / bins.width + bins.zero) / model.bins;
  return Math.min(Math.max(place, 0), 1);
}

/** Draw the bins of a split, as stacked colors or shaded bars, in a box of the given pixels. */
function binShapes(tree, split, bins, width, height) {
  return hasGroups()
    ? stackedShapes(bins, width, height)
    : shadedShapes(tree, split, bins, width, height);
}

/** One path for each class, so that a histogram has few elements for any number of bins. */
function stackedShapes(bins, width, height) {
  const step = width / model.bins;
  const scale = height / bins.largest;
  const base = new Float64Array(model.bins);
  const shapes = [];
  for (let g = 0; g < model.colors.groups; g++) {
    let path = "";
    for (let b = 0; b < model.bins; b++) {
      const count = bins.counts[b * model.colors.groups + g];
      if (count === 0) continue;
      const top = height - scale * (base[b] + count);
      path += `M${round(b * step)} ${round(top)}h${round(step - 1)}v${round(scale * count)}`;
      path += `h${round(1 - step)}z`;
      base[b] += count;
    }
    if (path) shapes.push(svgElement("path", { d: path, class: groupClass(g) }));
  }
  return shapes;
}

function shadedShapes(tree, split, bins, width, height) {
  const step = width / model.bins;
  const { shades } = tree.histograms;
  const outputs = model.colors.low.length;
  return bins.totals.flatMap((count, b) => {
    if (count === 0) return [];
    const tall = Math.max((height * count) / bins.largest, 1);
    const bar = svgElement("rect", {
      x: round(b * step),
      y: round(height - tall),
      width: round(step - 1),
      height: round(tall),
    });
    const shade = shades[(split * model.bins + b) * outputs + state.shade];
    bar.style.fill = shadeColor(shade / 255);
    return [bar];
  });
}

function round(pixels) {
  return Math.round(pixels * 100) / 100;
}

/** The line at a score, from top to bottom. */
function scoreLine(bins, score, width, height, className) {
  const x = round(placeOfScore(bins, score) * width);
  return svgElement("path", { d: `M${x} 0v${height}`, class: className });
}

/** A score in the units of the left side of the condition. */
function onAxis(tree, split, score) {
  const [threshold, factor] = tree.axes[split];
  return threshold + factor * score;
}

/** Write a score in those units, with digits that fit the width of the histogram. */
function axisText(tree, split, score) {
  const [, factor, origin] = tree.axes[split];
  const value = onAxis(tree, split, score);
  if (!tree.histograms) return quantityText(value, origin);
  const span = Math.abs(factor) * tree.histograms.width[split] * model.bins;
  return quantityText(Math.abs(value) < ROUNDING * span ? 0 : value, origin, span);
}

const ROUNDING = 1e-6; // of float32 scores, relative to the width of the histogram

/** Draw the large histogram of a split, with its axis, its threshold and the row's own score. */
function scoreChart(tree, split) {
  const bins = splitBins(tree, split);
  if (!bins) return element("p", { class: "quiet", text: missingHistogram() });
  const [width, height, axis] = [360, 120, 34];
  const chart = svgElement("svg", {
    viewBox: `0 0 ${width} ${height + axis}`,
    class: "score-chart",
    role: "img",
    "aria-label": histogramWords(tree, split, bins),
  });
  chart.append(...binShapes(tree, split, bins, width, height));
  chart.append(svgElement("path", { d: `M0 ${height}h${width}`, class: "baseline" }));
  chart.append(scoreLine(bins, 0, width, height + 6, "threshold"));
  const step = currentPath()?.steps.find(({ node }) => node === split);
  if (step) chart.append(...rowMark(bins, step.score, width, height));
  chart.append(...axisLabels(tree, split, bins, width, height));
  return chart;
}

function missingHistogram() {
  return model.rows
    ? "No row of the table reaches this split."
    : "This page was made without a table. Pass X to see a histogram of its rows.";
}

function rowMark(bins, score, width, height) {
  const x = round(placeOfScore(bins, score) * width);
  return [
    scoreLine(bins, score, width, height, "row-line"),
    svgElement("path", { d: `M${x - 6} 0h12l-6 9z`, class: "row-mark" }),
  ];
}

function chartLabel(x, y, anchor, text, className) {
  return svgElement("text", { x: round(x), y, "text-anchor": anchor, class: className, text });
}

/** Labels below the axis: the threshold, its sides, and the ends if there is room. */
function axisLabels(tree, split, bins, width, height) {
  const [low, high] = axisEnds(tree, split, bins);
  const at = placeOfScore(bins, 0) * width;
  const middle = thresholdText(tree, split);
  const half = 12 + 3.5 * middle.length;
  const x = Math.min(Math.max(at, half), width - half);
  const labels = [chartLabel(x, height + 16, "middle", middle, "tick")];
  const add = (...label) => labels.push(chartLabel(...label));
  if (at > 40) add(at - 6, height + 30, "end", "← no", "side");
  if (at < width - 40) add(at + 6, height + 30, "start", "yes →", "side");
  if (at > 2 * half + 30) add(0, height + 16, "start", low, "quiet-tick");
  if (at < width - 2 * half - 30) add(width, height + 16, "end", high, "quiet-tick");
  return labels;
}

/** The labels at both ends of a split's axis. */
function axisEnds(tree, split, bins) {
  const edges = [-bins.zero, model.bins - bins.zero];
  return edges.map((edge) => axisText(tree, split, edge * bins.width));
}

/** A histogram for those who do not see it. */
function histogramWords(tree, split, bins) {
  const [left, right] = childrenOf(tree, split).map((child) => rowCount(tree, child, model));
  const [low, high] = axisEnds(tree, split, bins);
  return (
    `Histogram of the left side of the condition over ${plural(left + right, "row")}, from ` +
    `${low} to ${high}; threshold ${thresholdText(tree, split)}: ${plural(left, "row")} on the ` +
    `side of no, ${countText(right)} on the side of yes.`
  );
}

/** The true numbers at a leaf as a histogram, with the leaf's own value on it. */
function targetChart(tree, leaf) {
  const [width, height] = [360, 90];
  const output = state.shade;
  const place = Math.min(Math.max(shareOnScale(meanOutputs(tree)[tree.nSplits + leaf]), 0), 1);
  const { low, high } = model.colors;
  const end = (x, anchor, value) =>
    chartLabel(x, height + 16, anchor, valueText(value, output), "quiet-tick");
  return svgElement(
    "svg",
    {
      viewBox: `0 0 ${width} ${height + 20}`,
      class: "score-chart",
      role: "img",
      "aria-label": "Histogram of the true values of the rows at this leaf",
    },
    ...targetBars(tree, leaf, output, width, height),
    svgElement("path", { d: `M0 ${height}h${width}`, class: "baseline" }),
    svgElement("path", { d: `M${round(place * width)} 0v${height}`, class: "threshold" }),
    end(0, "start", low[output]),
    end(width, "end", high[output]),
  );
}
