// The visible part of the drawing: dragging, wheel, pinching, and moves to a node.
"use strict";

const view = { x: 0, y: 0, scale: 1 }; // point p of the drawing appears at (x, y) + scale * p
const SCALES = { least: 0.03, readable: 0.45, fitted: 1.25, most: 2.5 };
const MARGIN = 28;

let onViewChange = () => {};

function canvasSize() {
  const canvas = byId("canvas");
  return { width: canvas.clientWidth, height: canvas.clientHeight };
}

function setView(x, y, scale) {
  Object.assign(view, { x, y, scale: Math.min(Math.max(scale, SCALES.least), SCALES.most) });
  byId("stage").style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`;
  onViewChange();
}

/** Zoom about a fixed point of the canvas. */
function zoomAt(pointX, pointY, factor) {
  const scale = Math.min(Math.max(view.scale * factor, SCALES.least), SCALES.most);
  const ratio = scale / view.scale;
  setView(pointX - (pointX - view.x) * ratio, pointY - (pointY - view.y) * ratio, scale);
}

function zoomBy(factor) {
  const { width, height } = canvasSize();
  zoomAt(width / 2, height / 2, factor);
}

/** The part of the canvas for a drawing that fits it. */
function roomForDrawing() {
  const { width, height } = canvasSize();
  const legend = byId("legend").offsetHeight;
  return { width: width - 2 * MARGIN, height: height - legend - 3 * MARGIN };
}

/** The scale at which a box of the drawing fits the canvas. */
function fittingScale({ left, top, right, bottom }) {
  const room = roomForDrawing();
  return Math.min(room.width / (right - left), room.height / (bottom - top));
}

/** The view that fits a box of the drawing, with limited magnification. */
function viewOfBox(box, leastScale = SCALES.least) {
  const { left, top, right, bottom } = box;
  const { width } = canvasSize();
  const scale = Math.max(Math.min(fittingScale(box), SCALES.fitted), leastScale);
  const spare = Math.max(roomForDrawing().height - scale * (bottom - top), 0);
  const y = byId("legend").offsetHeight + MARGIN + spare / 4 - top * scale;
  return { x: width / 2 - (scale * (left + right)) / 2, y, scale };
}

/** Move to another view, smoothly unless reduced motion is set. */
function moveTo(goal, milliseconds = 260) {
  const start = { ...view };
  tween("view", prefersStillness() ? 0 : milliseconds, (share) => {
    const scale = start.scale * (goal.scale / start.scale) ** share;
    // Along a straight line in the drawing's coordinates, for any change of scale.
    const ratio =
      goal.scale === start.scale ? share : (scale - start.scale) / (goal.scale - start.scale);
    setView(start.x + (goal.x - start.x) * ratio, start.y + (goal.y - start.y) * ratio, scale);
  });
}

const running = new Map(); // name of an animation -> id of its next frame

/** Call `step(share)` each frame, with share easing from 0 to 1; replaces one of that name. */
function tween(name, milliseconds, step) {
  cancelAnimationFrame(running.get(name));
  const start = performance.now();
  byId("canvas").dataset.moving = "yes";
  const frame = (now) => {
    const share = milliseconds > 0 ? Math.min((now - start) / milliseconds, 1) : 1;
    step(share < 1 ? 1 - (1 - Math.max(share, 0)) ** 3 : 1);
    if (share < 1) {
      running.set(name, requestAnimationFrame(frame));
      return;
    }
    running.delete(name);
    if (running.size === 0) delete byId("canvas").dataset.moving;
  };
  if (milliseconds > 0) running.set(name, requestAnimationFrame(frame));
  else frame(start);
}

// Pointers: one drags, two pinch.

const pointers = new Map(); // id -> last position

function startPointer(event) {
  if (event.button !== 0 || event.target.closest("button, select, a")) return;
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  byId("canvas").classList.add("dragging");
}

function movePointer(event) {
  const last = pointers.get(event.pointerId);
  if (!last) return;
  const before = pinch();
  const moved = { x: event.clientX - last.x, y: event.clientY - last.y };
  Object.assign(last, { x: event.clientX, y: event.clientY });
  if (pointers.size === 1) {
    capturePointer(event, moved);
    setView(view.x + moved.x, view.y + moved.y, view.scale);
    return;
  }
  const after = pinch();
  const { left, top } = byId("canvas").getBoundingClientRect();
  setView(view.x + after.x - before.x, view.y + after.y - before.y, view.scale);
  zoomAt(after.x - left, after.y - top, after.distance / before.distance);
}

/** Capture the pointer for a drag, which may leave the canvas, but not for a click on a card. */
function capturePointer(event, moved) {
  const canvas = byId("canvas");
  const isDrag = Math.abs(moved.x) + Math.abs(moved.y) > 1;
  if (isDrag && !canvas.hasPointerCapture(event.pointerId)) {
    canvas.setPointerCapture(event.pointerId);
  }
}

function endPointer(event) {
  pointers.delete(event.pointerId);
  if (pointers.size === 0) byId("canvas").classList.remove("dragging");
}

/** Middle and distance of the first two pointers. */
function pinch() {
  const [a, b = a] = pointers.values();
  return {
    x: (a.x + b.x) / 2,
    y: (a.y + b.y) / 2,
    distance: Math.max(Math.hypot(a.x - b.x, a.y - b.y), 1),
  };
}

/** Zoom. In a notebook, the wheel alone scrolls past the page, as past an image. */
function turnWheel(event) {
  if (window.self !== window.top && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const { left, top } = byId("canvas").getBoundingClientRect();
  const lines = event.deltaMode === 1 ? 16 : 1;
  const factor = Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016));
  zoomAt(event.clientX - left, event.clientY - top, factor);
}

function startViewport() {
  const canvas = byId("canvas");
  canvas.addEventListener("pointerdown", startPointer);
  canvas.addEventListener("pointermove", movePointer);
  canvas.addEventListener("pointerup", endPointer);
  canvas.addEventListener("pointercancel", endPointer);
  canvas.addEventListener("pointerleave", (event) => {
    if (!canvas.hasPointerCapture(event.pointerId)) endPointer(event);
  });
  canvas.addEventListener("wheel", turnWheel, { passive: false });
}
