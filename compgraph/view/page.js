/* The core of all pages: elements, theme, legend, tooltip, search, and an SVG drawing that pans and zooms.

   The script of each kind of picture follows this one and reads `data`. Text enters the page as text, never as markup. */
"use strict";

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const main = document.querySelector("main"), hint = byId("hint"), query = byId("query");
const NARROW = 640; // pixels, as in the style sheet
const TIME = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]], BYTES = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]];

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const element = (kind, attributes = {}, ...children) => filled(document.createElement(kind), attributes, children);
const draw = (kind, attributes, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", kind), attributes, children);

function button(content, title, action, attributes = {}) {
  const made = element("button", { type: "button", title, ...attributes }, content);
  made.addEventListener("click", action);
  return made;
}
const addTools = (...buttons) => byId("tools").prepend(...buttons);

function inUnits(number, units) {
  const [unit, scale] = units.find((each) => number >= each[1]) || units.at(-1);
  return number ? `${Number((number / scale).toPrecision(3))} ${unit}` : "0";
}

/* ---------------------------------------------------------------------------------------- theme and legend */

const LEGEND = {
  ...data.kinds, active: "at work", tangent: "tangent", forward: "forward", backward: "backward",
  scope: "scopes, functions, lines", rest: "between operations", alive: "bytes alive", sweep: "derivatives are passed back",
};
const showLegend = (kinds) => byId("legend").append(...kinds.map((kind) => element("li", {}, element("i", { class: kind }), LEGEND[kind])));

const isDark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
const nameTheme = () => { byId("theme").textContent = isDark() ? "Light" : "Dark"; };
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
nameTheme();

/* ------------------------------------------------------------------------------------------------- tooltip */

function showHint(text, x, y) {
  hint.textContent = text;
  hint.hidden = false;
  const { width, height } = hint.getBoundingClientRect();
  hint.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 4))}px`;
  hint.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
}
const hideHint = () => { hint.hidden = true; };

/* -------------------------------------------------------------------------------------------------- search */

/* A kind of picture sets what it has: the texts that are searched, how matches are marked, and how to move to one of them. */
const search = { texts: [], mark() {}, show() {}, found: [], at: -1 };
let dismiss = () => {}; // by Escape

query.addEventListener("input", () => {
  const words = query.value.trim().toLowerCase();
  search.found = words ? search.texts.flatMap((text, i) => (text.toLowerCase().includes(words) ? [i] : [])) : [];
  search.at = -1;
  byId("found").textContent = !words ? "" : search.found.length ? `${search.found.length} found` : "none";
  search.mark();
});
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const { found } = search;
  if (!found.length) return;
  search.at = (search.at + 1) % found.length;
  search.show(found[search.at]);
  byId("found").textContent = `${search.at + 1} of ${found.length}`;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (!hint.hidden) hideHint();
    else dismiss();
  } else if (event.key === "/" && event.target !== query) {
    event.preventDefault();
    query.focus();
  }
});

/* -------------------------------------------------------------------------------------------- pan and zoom */

const eye = { x: 0, y: 0, scale: 1 };
let graph, view, size = { w: 0, h: 0 }; // the SVG, the group in it that moves, and the size of what it shows
let travelled = 0;                       // pixels since the pointer went down: a click is no drag
let moved = false;                       // whether the reader has panned or zoomed since everything was last fitted

function look() {
  view.setAttribute("transform", `translate(${eye.x} ${eye.y}) scale(${eye.scale})`);
}

/* The largest scale at which everything is visible. */
function fitting() {
  const { width, height } = graph.getBoundingClientRect();
  return Math.min(1.6, (width - 32) / Math.max(size.w, 1), (height - 32) / Math.max(size.h, 1));
}

function fit() {
  moved = false;
  const { width, height } = graph.getBoundingClientRect();
  eye.scale = fitting();
  eye.x = (width - size.w * eye.scale) / 2;
  eye.y = (height - size.h * eye.scale) / 2;
  look();
}

function zoom(factor, x, y) {
  const { width, height } = graph.getBoundingClientRect();
  [x, y] = x === undefined ? [width / 2, height / 2] : [x, y];
  const scale = Math.min(8, Math.max(0.02, eye.scale * factor));
  eye.x = x - ((x - eye.x) * scale) / eye.scale;
  eye.y = y - ((y - eye.y) * scale) / eye.scale;
  eye.scale = scale;
  look();
}

function move(x, y) {
  eye.x += x;
  eye.y += y;
  look();
}

/* Moves the view as far as is needed to show a rectangle. */
function bringIn({ x, y, w, h }, centred) {
  const { width, height } = graph.getBoundingClientRect();
  if (centred && eye.scale < 0.7) zoom(1 / eye.scale);
  const [left, top] = [x * eye.scale + eye.x, y * eye.scale + eye.y], [right, bottom] = [left + w * eye.scale, top + h * eye.scale];
  const within = left >= 8 && top >= 8 && right <= width - 8 && bottom <= height - 8;
  if (!within || centred) move(width / 2 - (left + right) / 2, height / 2 - (top + bottom) / 2);
}

/* The same by the reader, whose view is kept when the size of the drawing changes. */
function zoomByReader(...how) {
  moved = true;
  zoom(...how);
}
function moveByReader(x, y) {
  moved = true;
  move(x, y);
}

const KEYS = {
  "+": () => zoomByReader(1.25), "=": () => zoomByReader(1.25), "-": () => zoomByReader(0.8), 0: fit,
  ArrowLeft: () => moveByReader(60, 0), ArrowRight: () => moveByReader(-60, 0),
  ArrowUp: () => moveByReader(0, 60), ArrowDown: () => moveByReader(0, -60),
};

/* Lets mouse, touch and keys move an SVG; `activate(target)` handles Enter and Space on an element in it. */
function makeMovable(svg, group, activate) {
  [graph, view] = [svg, group];
  const fingers = new Map();
  const local = (event) => {
    const frame = graph.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  graph.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, local(event));
    if (fingers.size === 1) travelled = 0;
  });
  graph.addEventListener("pointermove", (event) => {
    const last = fingers.get(event.pointerId);
    if (!last) return;
    const now = local(event);
    const other = [...fingers].find(([id]) => id !== event.pointerId);
    travelled += Math.hypot(now[0] - last[0], now[1] - last[1]);
    if (other) {
      const apart = (point) => Math.hypot(point[0] - other[1][0], point[1] - other[1][1]);
      zoomByReader(apart(now) / Math.max(apart(last), 1), (now[0] + other[1][0]) / 2, (now[1] + other[1][1]) / 2);
      moveByReader((now[0] - last[0]) / 2, (now[1] - last[1]) / 2);
    } else if (travelled > 4) {
      graph.setPointerCapture(event.pointerId);
      graph.classList.add("moving");
      moveByReader(now[0] - last[0], now[1] - last[1]);
    }
    fingers.set(event.pointerId, now);
  });
  for (const kind of ["pointerup", "pointercancel", "pointerleave"]) {
    graph.addEventListener(kind, (event) => {
      if (kind === "pointerleave" && graph.hasPointerCapture(event.pointerId)) return;
      fingers.delete(event.pointerId);
      graph.classList.remove("moving");
    });
  }
  graph.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomByReader(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...local(event));
  }, { passive: false });
  graph.addEventListener("click", (event) => { if (travelled <= 4) activate(event.target); });
  graph.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const known = KEYS[event.key];
    if (known) known();
    else if (!((event.key === "Enter" || event.key === " ") && activate(event.target))) return;
    event.preventDefault();
  });
}
