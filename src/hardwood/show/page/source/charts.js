// Histograms and bars.
"use strict";

/**
 * The histogram of a split's scores, as one record for the bins: heights (of the largest) by colour,
 * and where the threshold is. Null where no rows were given, or none reach the split.
 */
function splitBins(tree, split) {
  if (!tree.histograms || rowCount(tree, split, model) === 0) return null;
  const { bins } = model;
  const groups = model.colours.groups;
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

/** Where a score lies between the left (0) and the right end (1) of a split's histogram. */
function placeOfScore(bins, score) {
  const place = (score / bins.width + bins.zero) / model.bins;
  return Math.min(Math.max(place, 0), 1);
}

/** Draw the bins of a split into a box of so many pixels: a stack of colours, or shaded bars. */
function binShapes(tree, split, bins, width, height) {
  return hasGroups()
    ? stackedShapes(bins, width, height)
    : shadedShapes(tree, split, bins, width, height);
}

/** One path for each class, so that a histogram is a few elements however many bins it has. */
function stackedShapes(bins, width, height) {
  const step = width / model.bins;
  const scale = height / bins.largest;
  const base = new Float64Array(model.bins);
  const shapes = [];
  for (let g = 0; g < model.colours.groups; g++) {
    let path = "";
    for (let b = 0; b < model.bins; b++) {
      const count = bins.counts[b * model.colours.groups + g];
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
  const outputs = model.colours.low.length;
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
    bar.style.fill = shadeColour(shade / 255);
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

/** A score in the units of the condition: what stands left of its relation. */
function onAxis(tree, split, score) {
  const [threshold, factor] = tree.axes[split];
  return threshold + factor * score;
}

/** Write a score in those units, as exactly as its histogram is wide. */
function axisText(tree, split, score) {
  const [, factor, origin] = tree.axes[split];
  const width = tree.histograms ? Math.abs(factor) * tree.histograms.width[split] : Infinity;
  return quantityText(onAxis(tree, split, score), origin, width * model.bins);
}

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
    : "Made without a table: give X to see how its rows fall on both sides.";
}

function rowMark(bins, score, width, height) {
  const x = round(placeOfScore(bins, score) * width);
  return [
    scoreLine(bins, score, width, height, "row-line"),
    svgElement("path", { d: `M${x - 6} 0h12l-6 9z`, class: "row-mark" }),
  ];
}

/** Labels below the axis: its ends, the threshold, and which side goes where. */
function axisLabels(tree, split, bins, width, height) {
  const ends = [-bins.zero, model.bins - bins.zero].map((b) => b * bins.width);
  const at = placeOfScore(bins, 0) * width;
  const label = (x, y, anchor, text, className) =>
    svgElement("text", { x: round(x), y, "text-anchor": anchor, class: className, text });
  const labels = [];
  if (at > 40) labels.push(label(at - 6, height + 30, "end", "← no", "side"));
  if (at < width - 40) labels.push(label(at + 6, height + 30, "start", "yes →", "side"));
  const middle = thresholdText(tree, split);
  const room = 12 + 3.5 * middle.length;
  const inside = Math.min(Math.max(at, room), width - room);
  labels.push(label(inside, height + 16, "middle", middle, "tick"));
  if (at > 2 * room + 30) {
    labels.push(label(0, height + 16, "start", axisText(tree, split, ends[0]), "quiet-tick"));
  }
  if (at < width - 2 * room - 30) {
    labels.push(label(width, height + 16, "end", axisText(tree, split, ends[1]), "quiet-tick"));
  }
  return labels;
}

/** A histogram for those who do not see it. */
function histogramWords(tree, split, bins) {
  const [left, right] = childrenOf(tree, split).map((child) => rowCount(tree, child, model));
  const ends = [-bins.zero, model.bins - bins.zero].map((b) => axisText(tree, split, b * bins.width));
  return (
    `Histogram of the left side of the condition over ${plural(left + right, "row")}, from ` +
    `${ends[0]} to ${ends[1]}; threshold ${thresholdText(tree, split)}: ${countText(left)} rows are ` +
    `on the side of no, ${countText(right)} on the side of yes.`
  );
}

/** A bar that grows from the middle: right toward yes, left toward no. `share` is -1 to 1. */
function divergingBar(share, className = "") {
  const bar = element("i", { class: `bar ${className} ${share < 0 ? "toward-no" : "toward-yes"}` });
  bar.style.width = `${Math.min(Math.abs(share), 1) * 50}%`;
  return element("span", { class: "diverging", "aria-hidden": "true" }, bar);
}

/** A bar that grows from the left. */
function plainBar(share, paint = () => {}) {
  const bar = element("i", { class: "bar" });
  bar.style.width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  paint(bar);
  return element("span", { class: "plain", "aria-hidden": "true" }, bar);
}
