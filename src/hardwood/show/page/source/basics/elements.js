// Creates elements. Names of features, classes and trees enter the page only here, as text nodes and
// attribute values. They are never parsed as HTML, so none can act as markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

/** Create an HTML element: `text` is its content, `on` its listeners, the rest attributes. */
function element(tag, options = {}, ...children) {
  return fill(document.createElement(tag), options, children);
}

/** Create an SVG element in the same way. */
function svgElement(tag, options = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), options, children);
}

function fill(made, { text, on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

/** Create a push button. */
function button(text, onClick, attributes = {}) {
  return element("button", { type: "button", text, on: { click: onClick }, ...attributes });
}

/** A name from the model, isolated from the text direction of its surroundings. */
function nameElement(text, className = "") {
  return element("bdi", { text, title: text, class: `name ${className}` });
}

/** Whether the reader's system is set to reduced motion. */
function prefersStillness() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}
