// Tables of names, bars and numbers, and their headings.
"use strict";

/** A part of a panel, with its heading. */
function section(title, ...children) {
  return element("section", {}, element("h3", { text: title }), ...children);
}

function quietText(text) {
  return element("p", { class: "quiet", text });
}

/**
 * A table, with a button to show the rest if it has more than `atFirst` rows.
 *
 * @param kind - class of the table in page.css, which sets the widths of its columns
 * @param head - names of the columns; no header if empty
 */
function tableParts(kind, head, rows, atFirst = Infinity) {
  const body = element("tbody", {}, ...rows.slice(0, atFirst));
  const table = element("table", { class: kind });
  if (head.length) {
    const names = head.map((text) => element("th", { text, scope: "col" }));
    table.append(element("thead", {}, element("tr", {}, ...names)));
  }
  table.append(body);
  return rows.length > atFirst ? [table, moreButton(body, rows, atFirst)] : [table];
}

/** A button that shows the rest of a list, and then calls `after`. */
function moreButton(list, items, nShown, after = () => {}) {
  const showAll = () => {
    list.append(...items.slice(nShown));
    more.remove();
    after();
  };
  const more = button(`Show all ${items.length}`, showAll, { class: "link" });
  return more;
}

/** A row of a table: a heading, bars one below the other, and numbers. */
function barRow(heading, bars, figures, attributes = {}) {
  return element(
    "tr",
    attributes,
    element("th", { scope: "row" }, heading),
    element("td", { class: "bars" }, ...bars),
    ...figures.map((text) => element("td", { class: "figure", text })),
  );
}

/** A bar that grows from the middle: right toward yes, left toward no. `share` is -1 to 1. */
function divergingBar(share, className = "") {
  const bar = element("i", { class: `bar ${className} ${share < 0 ? "toward-no" : "toward-yes"}` });
  bar.style.width = `${Math.min(Math.abs(share), 1) * 50}%`;
  return element("span", { class: "diverging", "aria-hidden": "true" }, bar);
}

/** A bar that grows from the left, in the color of a class if given. */
function plainBar(share, className = "") {
  const bar = element("i", { class: `bar ${className}` });
  if (share === 0) bar.style.minWidth = 0;
  bar.style.width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  return element("span", { class: "plain", "aria-hidden": "true" }, bar);
}

/** The largest absolute value; 1 if all are 0, so that it can be divided by. */
function largestSize(numbers) {
  return numbers.reduce((most, number) => Math.max(most, Math.abs(number)), 0) || 1;
}
