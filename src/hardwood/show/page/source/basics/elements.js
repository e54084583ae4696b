// Making elements. Names of features, classes and trees reach the page as text nodes and attribute
// values, here and nowhere else: no HTML is ever made of them, so none can be taken for markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

/** Make an HTML element: `text` is its content, `on` its listeners, all else are attributes. */
function element(tag, options = {}, ...children) {
  return fill(document.createElement(tag), options, children);
}

/** Make an SVG element, likewise. */
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

/** Make a push button. */
function button(text, onClick, attributes = {}) {
  return element("button", { type: "button", text, on: { click: onClick }, ...attributes });
}

/** A name from the model, kept apart from its surroundings whichever way its script runs. */
function nameElement(text, className = "") {
  return element("bdi", { text, title: text, class: `name ${className}` });
}

/** Whether the reader asked their system for less movement. */
function prefersStillness() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}
