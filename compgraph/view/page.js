/* Shows the graph, and answers the reader. Text reaches the page as text only, never as markup. */
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const graph = byId("graph"), view = byId("view"), panel = byId("panel"), hint = byId("hint"), query = byId("query");
let across = data.direction === "TB"; // whether layers lie one below the other
let chosenByReader = false;           // the direction, by the button
const REST = -1, NARROW = 640; // pixels, as in the style sheet
const KINDS = { variable: "variable", constant: "constant", operation: "operation", write: "write in place",
  called: "left to NumPy", result: "result" };

const SIGN = 19; // pixels: the size of an operation's sign

const canvas = document.createElement("canvas").getContext("2d");
function widthOf(text, style = "", points = 13) {
  canvas.font = `${style} ${points}px Helvetica, Arial, sans-serif`;
  return canvas.measureText(text).width;
}

function draw(kind, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function element(kind, attributes, ...children) {
  const made = document.createElement(kind);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/* ------------------------------------------------------------------------------------- what is in view */

let items = [];       // of the entries, those that are drawn
let boxItems = [];    // of the boxes, those that are drawn
let links = [];
let size = { w: 0, h: 0 };

const uses = data.entries.map(() => []), operands = data.entries.map(() => []);
for (const arrow of data.arrows) {
  operands[arrow.target].push(arrow.source);
  if (arrow.source !== REST) uses[arrow.source].push(arrow.target);
}

function boxesAround(box) {
  const boxes = [];
  for (; box !== null; box = data.boxes[box].parent) boxes.unshift(box);
  return boxes;
}

/* An item along and across; sizes are set as they are seen. */
function sized(item, w, h) {
  return Object.assign(item, across ? { along: h, across: w } : { along: w, across: h });
}

function entryItem(number) {
  const entry = data.entries[number], lines = entry.label.split("\n");
  const soft = ["variable", "constant", "result"].includes(entry.kind);
  const round = soft && lines.length === 1 && lines[0].length <= 12;
  const width = Math.max(...lines.map((line, i) => (i ? widthOf(line) : widthOf(line, "600", entry.sign ? SIGN : 13))));
  const w = Math.max(40, round ? width * 1.12 + 24 : width + 26);
  return sized({ id: "n" + number, number, entry, lines, round, soft, sign: entry.sign, late: entry.details.opname === "getitem" }, w, Math.max(36, lines.length * 17 + 15 + (entry.sign ? 4 : 0)));
}

function boxItem(number) {
  const box = data.boxes[number], width = widthOf(box.title, "600") + 48;
  const item = { id: "b" + number, number, box };
  if (box.closed) {
    const count = data.entries.filter((entry) => boxesAround(entry.box).includes(number)).length;
    item.lines = ["▸ " + box.title, `${count} ${count === 1 ? "node" : "nodes"}`];
    return sized(item, Math.max(width, 90), 52);
  }
  item.children = [];
  return Object.assign(item, across ? { titleAlong: TITLE, leastAcross: width } : { titleAcross: TITLE, leastAlong: width });
}

/* The innermost box around two items. */
function commonBox(one, other, root) {
  const outer = around(other);
  return around(one).find((box) => outer.includes(box)) || root;
}

function compose() {
  const root = { children: [], parent: null };
  boxItems = data.boxes.map(() => null);
  const into = (parent, item) => {
    item.parent = parent;
    parent.children.push(item);
    return item;
  };
  const holder = (box) => (box === null ? root : boxItems[box]);
  data.boxes.forEach((box, number) => {
    if (!boxesAround(box.parent).some((each) => data.boxes[each].closed)) boxItems[number] = into(holder(box.parent), boxItem(number));
  });
  items = data.entries.map((entry, number) => {
    const hiding = boxesAround(entry.box).find((each) => data.boxes[each].closed);
    return hiding === undefined ? into(holder(entry.box), entryItem(number)) : boxItems[hiding];
  });
  const rest = data.more ? into(root, sized({ id: "rest", rest: true, lines: [data.more] }, Math.max(110, widthOf(data.more) + 24), 34)) : null;
  const ends = data.arrows.map((arrow) => [arrow.source === REST ? rest : items[arrow.source], items[arrow.target]]);
  const keys = ends.map(([from, to]) => from.id + ">" + to.id), counts = new Map();
  for (const key of keys) counts.set(key, (counts.get(key) || 0) + 1);
  const known = new Set();
  links = [];
  data.arrows.forEach((arrow, number) => {
    const [from, to] = ends[number], outside = from.box || to.box;
    if ((from === to && from.box) || (outside && known.has(keys[number]))) return;
    known.add(keys[number]);
    const link = { from, to, again: arrow.again, number };
    if (!arrow.label || (outside && counts.get(keys[number]) > 1)) links.push(link);
    else if (arrow.again) links.push({ ...link, label: arrow.label });
    else {
      // A label stands in the middle of its arrow, with a place of its own: nothing is drawn over it.
      const label = into(commonBox(from, to, root), sized({ id: "l" + number, label: arrow.label }, widthOf(arrow.label, "", 12) + 8, 18));
      links.push({ ...link, to: label, begins: true }, { ...link, from: label, ends: true });
    }
  });
  layOut(root, links);
  const turn = (item) => {
    Object.assign(item, across
      ? { x: item.c, y: item.a, w: item.across, h: item.along } : { x: item.a, y: item.c, w: item.along, h: item.across });
    for (const child of item.children || []) turn(child);
  };
  turn(root);
  for (const link of links) if (across) link.points = link.points.map(([a, c]) => [c, a]);
  size = { w: root.w, h: root.h };
  return root;
}

/* --------------------------------------------------------------------------------------------- drawing */

function texts(lines, x, y, sign) {
  const top = y - ((lines.length - 1) * 17) / 2 + (sign && lines.length > 1 ? 2 : 0);
  return lines.map((line, i) => draw("text", { x, y: top + i * 17 - (sign && !i && lines.length > 1 ? 3 : 0), class: i ? undefined : sign ? "first sign" : "first" }, line));
}

function ring({ x, y, w, h }) {
  return draw("rect", { class: "ring", x: x - 5, y: y - 5, width: w + 10, height: h + 10, rx: 8 });
}

/* For readers aloud: of a sign, the word. */
function told({ entry, lines, sign }) {
  const { shape, dtype, value, opname } = entry.details;
  const facts = [shape && `shape ${shape}`, dtype, value && `value ${value.length > 60 ? value.slice(0, 60) + "…" : value}`];
  return [[sign ? opname : lines[0], ...lines.slice(1)].join(", "), KINDS[entry.kind], ...facts].filter(Boolean).join(", ");
}

function drawEntry(item) {
  const { x, y, w, h, entry } = item;
  const shape = item.round
    ? draw("ellipse", { class: "shape", cx: x + w / 2, cy: y + h / 2, rx: w / 2, ry: h / 2 })
    : draw("rect", { class: "shape", x, y, width: w, height: h, rx: item.soft ? Math.min(h / 2, 18) : 8 });
  const node = draw("g", {
    id: `node-${item.number}`, class: `node ${entry.kind}${entry.marked ? " marked" : ""}`, tabindex: 0, role: "button",
    "aria-label": told(item), "data-place": item.number,
  }, ring(item), shape, ...texts(item.lines, x + w / 2, y + h / 2, item.sign));
  item.node = node;
  return node;
}

function drawTitle(item) {
  const { x, y, w, h, box } = item;
  const closed = !item.children;
  const inside = closed
    ? [draw("rect", { class: "shape", x, y, width: w, height: h, rx: 8 }), ...texts(item.lines, x + w / 2, y + h / 2)]
    : [draw("rect", { class: "hit", x, y, width: w, height: TITLE + 4 }), draw("text", { x: x + 12, y: y + 15, class: "first" }, "▾ " + box.title)];
  item.node = draw("g", {
    id: `box-${item.number}`, class: `title${closed ? " closed" : ""}`, tabindex: 0, role: "button", "aria-expanded": String(!closed),
    "aria-label": `${box.count > 1 ? `part repeated ${box.count} times` : `scope ${box.title}`}${closed ? `, ${item.lines[1]}` : ""}`,
    "data-box": item.number,
  }, ring(closed ? item : { x: x + 5, y: y + 5, w: w - 10, h: TITLE - 4 }), ...inside);
  return item.node;
}

function pathOf({ points }) {
  let path = `M${points[0]}`, [px, py] = points[0];
  for (const [x, y] of points.slice(1)) {
    const [mx, my] = [(px + x) / 2, (py + y) / 2];
    if (px === x && py === y) continue; // a path that ends in no direction has no head
    if (px === x || py === y) path += `L${x} ${y}`;
    else path += across ? `C${px} ${my} ${x} ${my} ${x} ${y}` : `C${mx} ${py} ${mx} ${y} ${x} ${y}`;
    [px, py] = [x, y];
  }
  return path;
}

/* Down from the start, back along the floor, and up to the end. */
function wayBack({ points }) {
  const [[sx, sy], [ax, ay], [bx, by], [ex, ey]] = points;
  return across
    ? `M${sx} ${sy}C${sx} ${sy + 18} ${ax} ${sy + 18} ${ax} ${sy - 6}L${bx} ${ey + 6}C${bx} ${ey - 18} ${ex} ${ey - 18} ${ex} ${ey}`
    : `M${sx} ${sy}C${sx + 20} ${sy} ${sx + 20} ${ay} ${sx - 6} ${ay}L${ex + 6} ${by}C${ex - 20} ${by} ${ex - 20} ${ey} ${ex} ${ey}`;
}

function drawLink(link) {
  const path = link.back ? wayBack(link) : pathOf(link);
  link.node = draw("path", {
    class: `arrow${link.again ? " again" : ""}`, d: path, "marker-end": link.begins ? undefined : "url(#head)",
    id: `edge-${link.number}${link.ends ? "-end" : ""}`,
  });
  if (!link.label) return [link.node];
  const [, [x, y], [nx, ny]] = link.points; // along the floor of the way back
  return [link.node, draw("text", { x: (x + nx) / 2, y: (y + ny) / 2, class: "adjoint" }, link.label)];
}

function show() {
  const root = compose();
  const layers = { boxes: [], labels: [], nodes: [] };
  const walk = (item, depth) => {
    for (const child of item.children) {
      if (child.children) {
        const { x, y, w, h } = child;
        const kind = `box${depth % 2 ? " inner" : ""}${child.box.count > 1 ? " several" : ""}`;
        layers.boxes.push(draw("rect", { class: kind, x, y, width: w, height: h, rx: 10 }));
        layers.nodes.push([child, drawTitle(child)]);
        walk(child, depth + 1);
      } else if (child.label) {
        layers.labels.push(draw("text", { x: child.x + child.w / 2, y: child.y + child.h / 2, class: "adjoint" }, child.label));
      } else if (child.rest) {
        layers.nodes.push([child, draw("g", { id: "rest" }, ...texts(child.lines, child.x + child.w / 2, child.y + child.h / 2))]);
      } else layers.nodes.push([child, child.box ? drawTitle(child) : drawEntry(child)]);
    }
  };
  walk(root, 0);
  const along = ([item]) => (across ? item.y * 1e6 + item.x : item.x * 1e6 + item.y); // the order of Tab: that of computation
  layers.nodes.sort((one, other) => along(one) - along(other));
  view.replaceChildren(...layers.boxes, ...links.flatMap(drawLink), ...layers.labels, ...layers.nodes.map(([, node]) => node));
  byId("open").disabled = !data.boxes.some((box) => box.closed);
  byId("close").disabled = !data.boxes.some((box) => !box.closed);
  mark();
}

/* ---------------------------------------------------------------------------------------- moving about */

const eye = { x: 0, y: 0, scale: 1 };

function look() {
  view.setAttribute("transform", `translate(${eye.x} ${eye.y}) scale(${eye.scale})`);
}

/* How large all of it can be shown. */
function fitting() {
  const { width, height } = graph.getBoundingClientRect();
  return Math.min(1.6, (width - 32) / Math.max(size.w, 1), (height - 32) / Math.max(size.h, 1));
}

function fit() {
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

/* Moves the view as far as is needed to see an item. */
function bringIn({ x, y, w, h }, centred) {
  const { width, height } = graph.getBoundingClientRect();
  if (centred && eye.scale < 0.7) zoom(1 / eye.scale);
  const [left, top] = [x * eye.scale + eye.x, y * eye.scale + eye.y], [right, bottom] = [left + w * eye.scale, top + h * eye.scale];
  const within = left >= 8 && top >= 8 && right <= width - 8 && bottom <= height - 8;
  if (!within || centred) move(width / 2 - (left + right) / 2, height / 2 - (top + bottom) / 2);
}

const fingers = new Map();
let travelled = 0;
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
    zoom(apart(now) / Math.max(apart(last), 1), (now[0] + other[1][0]) / 2, (now[1] + other[1][1]) / 2);
    move((now[0] - last[0]) / 2, (now[1] - last[1]) / 2);
  } else if (travelled > 4) {
    graph.setPointerCapture(event.pointerId);
    graph.classList.add("moving");
    move(now[0] - last[0], now[1] - last[1]);
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
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...local(event));
}, { passive: false });

/* --------------------------------------------------------------------------------- boxes, open and shut */

/* Opens or closes a box; it stays where it is on the screen. */
function toggle(number) {
  const before = boxItems[number];
  data.boxes[number].closed = !data.boxes[number].closed;
  show();
  const after = boxItems[number];
  move((before.x - after.x) * eye.scale, (before.y - after.y) * eye.scale);
  after.node.focus({ preventScroll: true });
}

function all(closed) {
  for (const box of data.boxes) box.closed = closed;
  show();
  fit();
}

/* Opens what hides an entry. */
function reveal(number) {
  const hiding = boxesAround(data.entries[number].box).filter((box) => data.boxes[box].closed);
  for (const box of hiding) data.boxes[box].closed = false;
  if (hiding.length) show();
}

/* ------------------------------------------------------------------------------------ panel, hint, search */

let chosen = null;
let found = [];
let foundAt = -1;

function mark() {
  for (const [number, item] of items.entries()) {
    if (!item.entry) continue;
    item.node.classList.toggle("chosen", number === chosen);
    item.node.classList.toggle("found", found.includes(number));
  }
  for (const { from, to, node } of links) node.classList.toggle("near", chosen !== null && (from.number === chosen && !!from.entry || to.number === chosen && !!to.entry));
}

function titleOf(number) {
  return number === REST ? data.more : data.entries[number].details.title;
}

function links_to(numbers) {
  return [...new Set(numbers)].map((number) => {
    if (number === REST) return element("span", {}, titleOf(number));
    const button = element("button", { type: "button" }, titleOf(number));
    button.addEventListener("click", () => go(number));
    return button;
  });
}

function tell(number) {
  const entry = data.entries[number], { title, name, opname, formula, value, shape, dtype, adjoint, line, code } = entry.details;
  const list = element("dl", {});
  const fact = (term, ...content) => list.append(element("dt", {}, term), element("dd", {}, ...content));
  if (formula) fact("Formula", element("span", { class: "formula" }, (name && opname ? `${title} = ` : "") + formula));
  if (value) fact("Value", element("pre", {}, value));
  if (shape) fact("Shape and dtype", `${shape} ${dtype}`);
  if (adjoint) fact("Adjoint", element("pre", {}, adjoint));
  if (line) fact("Made at", line, ...(code ? [element("pre", {}, code)] : []));
  if (entry.box !== null) fact("In", boxesAround(entry.box).map((box) => data.boxes[box].title).join(" / "));
  if (operands[number].length) fact("Computed from", ...links_to(operands[number]));
  if (uses[number].length) fact("Used by", ...links_to(uses[number]));
  const leave = element("button", { type: "button", class: "leave", "aria-label": "Close panel" }, "×");
  leave.addEventListener("click", dismiss);
  panel.replaceChildren(leave, element("h2", { id: "panel-title" }, title), element("p", { class: "kind" }, [opname, KINDS[entry.kind]].filter(Boolean).join(" · ")), list);
  panel.scrollTop = 0;
}

function choose(number) {
  chosen = number;
  tell(number);
  panel.hidden = false;
  hint.hidden = true;
  mark();
  bringIn(items[number]);
}

/* To another node, from the panel. */
function go(number) {
  reveal(number);
  choose(number);
  items[number].node.focus({ preventScroll: true });
}

function dismiss() {
  const last = chosen;
  chosen = null;
  panel.hidden = true;
  mark();
  if (last !== null && items[last].node) items[last].node.focus({ preventScroll: true });
}

function hintAt(number, x, y) {
  const { details } = data.entries[number];
  hint.textContent = [details.title, [details.shape, details.dtype].filter(Boolean).join(" "), details.value]
    .filter(Boolean).join("\n");
  hint.hidden = false;
  const { width, height } = hint.getBoundingClientRect();
  hint.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 4))}px`;
  hint.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
}

function search() {
  const words = query.value.trim().toLowerCase();
  const texts = (entry) => [entry.label, entry.details.name, entry.details.opname].join("\n").toLowerCase();
  found = words ? data.entries.flatMap((entry, number) => (texts(entry).includes(words) ? [number] : [])) : [];
  foundAt = -1;
  byId("found").textContent = !words ? "" : found.length ? `${found.length} found` : "none";
  mark();
}

function next(step) {
  if (!found.length) return;
  foundAt = (foundAt + step + found.length) % found.length;
  const number = found[foundAt];
  reveal(number);
  mark();
  bringIn(items[number], true);
  byId("found").textContent = `${foundAt + 1} of ${found.length}`;
  if (!panel.hidden) choose(number);
}

/* ------------------------------------------------------------------------------------------- listeners */

const placeOf = (target) => target.closest?.("[data-place]")?.dataset.place;
const boxOf = (target) => target.closest?.("[data-box]")?.dataset.box;

function activate(target) {
  if (placeOf(target) !== undefined) choose(+placeOf(target));
  else if (boxOf(target) !== undefined) toggle(+boxOf(target));
  else return false;
  return true;
}

graph.addEventListener("click", (event) => { if (travelled <= 4) activate(event.target); });
view.addEventListener("pointerover", (event) => {
  if (placeOf(event.target) !== undefined && event.pointerType !== "touch") hintAt(+placeOf(event.target), event.clientX, event.clientY);
});
view.addEventListener("pointerout", () => { hint.hidden = true; });
// Not on the view: a listener for the focus would make it one of the stops of Tab.
graph.addEventListener("focusin", ({ target }) => {
  if (target === graph || !target.matches(":focus-visible")) return;
  const item = placeOf(target) !== undefined ? items[+placeOf(target)] : boxItems[+boxOf(target)];
  bringIn(item.children ? { ...item, h: TITLE, w: 60 } : item);
  const frame = target.getBoundingClientRect();
  if (item.entry && panel.hidden) hintAt(item.number, frame.left, frame.bottom - 10);
});
graph.addEventListener("focusout", () => { hint.hidden = true; });

const KEYS = {
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit,
  ArrowLeft: () => move(60, 0), ArrowRight: () => move(-60, 0), ArrowUp: () => move(0, 60), ArrowDown: () => move(0, -60),
};
graph.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const known = KEYS[event.key];
  if (known) known();
  else if (!((event.key === "Enter" || event.key === " ") && activate(event.target))) return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (!hint.hidden) hint.hidden = true;
    else if (!panel.hidden) dismiss();
  } else if (event.key === "/" && event.target !== query) {
    event.preventDefault();
    query.focus();
  }
});
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  next(1);
});
query.addEventListener("input", search);
byId("smaller").addEventListener("click", () => zoom(0.8));
byId("larger").addEventListener("click", () => zoom(1.25));
byId("fit").addEventListener("click", fit);
byId("turn").addEventListener("click", () => {
  across = !across;
  chosenByReader = true;
  show();
  fit();
});
byId("open").addEventListener("click", () => all(false));
byId("close").addEventListener("click", () => all(true));

const isDark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
const nameTheme = () => { byId("theme").textContent = isDark() ? "Light" : "Dark"; };
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});

if (!data.boxes.length) byId("open").hidden = byId("close").hidden = true;
nameTheme();
/* On a narrow screen the graph lies in the direction in which it is larger, unless the reader has chosen one. */
function turnToFit() {
  if (chosenByReader) return;
  const asked = data.direction === "TB";
  const lying = (direction) => {
    if (across === direction) return fitting();
    across = direction;
    show();
    return fitting();
  };
  const before = lying(asked);
  if (innerWidth <= NARROW && lying(!asked) <= before) lying(asked);
}

/* All of it if that can be read, else the result. */
function start() {
  turnToFit();
  fit();
  if (eye.scale < 0.3) bringIn(items[0], true);
}
show();
start();
addEventListener("resize", start);
