// The bar of sizes: slide from the smallest tree to the largest, and see what its size costs.
"use strict";

const SCALE_BOX = { width: 280, height: 46, side: 8, top: 8, bottom: 6 }; // side: half a thumb
const LOSS_RATIO = 4; // between losses, from which their scale is logarithmic

/** Show the tree that was chosen, if the page has several sizes. */
function startSizes() {
  byId("size-bar").hidden = !model.sizes;
  if (!model.sizes) return;
  state.tree = chosenSize();
  byId("size").addEventListener("input", () =>
    change({ tree: sizeStops()[Number(byId("size").value)] }),
  );
  byId("size-chosen").addEventListener("click", () =>
    change({ tree: chosenSize(), terms: Infinity }),
  );
  fillTermLimits();
  whenever(["tree", "terms"], drawSizeBar);
  drawSizeBar();
}

function chosenSize() {
  return model.sizes.points.findIndex(({ isChosen }) => isChosen);
}

/**
 * The sizes to slide along: no smaller one has a smaller loss. The chosen size and the one that is
 * shown are among them.
 */
function sizeStops() {
  let best = Infinity;
  const stops = [];
  model.sizes.points.forEach(({ terms, loss, isChosen }, i) => {
    const isWithin = terms <= state.terms;
    if (i === state.tree || (isWithin && (isChosen || loss < best))) stops.push(i);
    if (isWithin) best = Math.min(best, loss);
  });
  return stops;
}

// Limits of the number of terms

function fillTermLimits() {
  const limits = [...new Set(model.sizes.points.map(({ terms }) => terms))].sort((a, b) => a - b);
  const chooser = byId("terms");
  byId("terms-chooser").hidden = limits.length < 3;
  const options = limits
    .slice(1, -1)
    .map((limit) => element("option", { value: limit, text: `at most ${limit}` }));
  chooser.append(element("option", { value: Infinity, text: "any number" }), ...options);
  chooser.addEventListener("change", () => limitTerms(Number(chooser.value)));
}

/** Slide along trees with few terms; show the one that is closest in size. */
function limitTerms(terms) {
  const { points } = model.sizes;
  const { numbers, terms: own } = points[state.tree];
  change({ terms });
  if (own <= terms) return;
  const within = sizeStops().filter((i) => points[i].terms <= terms);
  const smaller = within.filter((i) => points[i].numbers <= numbers);
  change({ tree: smaller.at(-1) ?? within[0] });
}

// Drawing

function drawSizeBar() {
  const stops = sizeStops();
  const slider = byId("size");
  slider.max = stops.length - 1;
  slider.value = stops.indexOf(state.tree);
  slider.disabled = stops.length === 1;
  slider.setAttribute("aria-valuetext", sizeSentence());
  byId("terms").value = state.terms;
  byId("size-chosen").hidden = currentSize().isChosen;
  const { words, numbers, isChosen } = currentSize();
  byId("size-words").replaceChildren(
    element("b", { text: words }),
    ` · ${plural(numbers, "number")} to read${isChosen ? " · chosen" : ""}`,
    element("br"),
    element("span", { class: "quiet", text: lossSentence() }),
  );
  byId("size-chart").replaceChildren(...sizeChart(stops));
}

function sizeSentence() {
  const { words, isChosen } = currentSize();
  return `${words}${isChosen ? ", chosen" : ""}: ${lossSentence()}`;
}

function lossSentence() {
  const { lossText, above, aboveText } = currentSize();
  const beside = above === 0 ? "the best" : `${aboveText} above the best`;
  return `${model.sizes.metric} on held-out rows ${lossText}, ${beside}`;
}

/** The loss of each size, with one standard error, above its place on the slider. */
function sizeChart(stops) {
  const points = stops.map((i) => model.sizes.points[i]);
  const { width, side } = SCALE_BOX;
  const step = (width - 2 * side) / Math.max(points.length - 1, 1);
  const x = (i) => round(side + i * step);
  const y = lossScale(points);
  const { loss, above } = currentSize();
  const best = y(loss - above);
  const line = svgElement("line", { x1: 0, x2: width, y1: best, y2: best, class: "best-loss" });
  const curve = svgElement("polyline", {
    points: points.map(({ loss }, i) => `${x(i)},${y(loss)}`).join(" "),
    class: "loss-curve",
  });
  const marks = points.flatMap((point, i) => sizeMarks(point, x(i), y));
  return [line, curve, ...marks];
}

function sizeMarks(point, x, y) {
  const { loss, error, isChosen } = point;
  const isShown = point === currentSize();
  const names = ["size-dot", isShown && "shown", isChosen && "chosen"].filter(Boolean).join(" ");
  const ends = { x1: x, x2: x, y1: y(loss - error), y2: y(loss + error) };
  return [
    svgElement("line", { ...ends, class: "loss-error" }),
    svgElement("circle", { cx: x, cy: y(loss), r: isShown ? 5 : 3, class: names }),
  ];
}

/** A function from losses to pixels. */
function lossScale(points) {
  const losses = points.map(({ loss }) => loss);
  const [least, most] = [Math.min(...losses), Math.max(...losses)];
  const isLogarithmic = least > 0 && most > LOSS_RATIO * least;
  const place = (loss) => (isLogarithmic ? Math.log(Math.max(loss, least / 2)) : loss);
  const { height, top, bottom } = SCALE_BOX;
  const range = place(most) - place(least) || 1;
  return (loss) => {
    const share = (place(most) - place(loss)) / range;
    return round(Math.min(Math.max(top + share * (height - top - bottom), 1), height - 1));
  };
}
