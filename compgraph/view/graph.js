/* Graphs: what is visible of the boxes and entries, their layout, the panel of an entry, and the boxes that open and close. */
"use strict";

const OMITTED = -1;      // in the place of an entry: the nodes that are not drawn
const SIGN = 19;      // pixels: the size of an operation's sign
const ROW = 17;       // pixels from line to line
let across = data.direction === "TB"; // whether layers lie one below the other
let chosenByReader = false;           // the direction, by the button

main.append(
  draw("svg", { id: "graph", role: "group", tabindex: 0, "aria-label":
    `${document.title}. Tab moves from node to node, Enter opens one; plus, minus and 0 zoom${data.frames ? "" : ", arrows move the view"}.` },
    draw("defs", {}, ...["head", "passed-head"].map((id) => draw("marker", {
      id, viewBox: "0 0 10 10", refX: 9.5, refY: 5, markerUnits: "userSpaceOnUse", markerWidth: 10, markerHeight: 10, orient: "auto-start-reverse",
    }, draw("path", { d: "M0 0.8 L10 5 L0 9.2 z" })))),
    draw("g", { id: "view" })),
  element("aside", { id: "panel", "aria-labelledby": "panel-title", tabindex: -1, hidden: "" }));
const panel = byId("panel");

const canvas = document.createElement("canvas").getContext("2d");
function widthOf(text, style = "", points = 13) {
  canvas.font = `${style} ${points}px Helvetica, Arial, sans-serif`;
  return canvas.measureText(text).width;
}

/* ------------------------------------------------------------------------------------- what is visible */

let items = [];         // for each entry, its item, or that of the closed box around it
let boxItems = [];      // for each box, its item, if it is visible
let links = [];
let labels = new Map(); // the texts on arrows, and in animations the lines in place of the texts

const uses = data.entries.map(() => []), operands = data.entries.map(() => []);
for (const arrow of data.arrows) {
  operands[arrow.target].push(arrow.source);
  if (arrow.source !== OMITTED) uses[arrow.source].push(arrow.target);
}

function boxesAround(box) {
  const boxes = [];
  for (; box !== null; box = data.boxes[box].parent) boxes.unshift(box);
  return boxes;
}

/* An item with its extent along and across the layers. */
function sized(item, w, h) {
  return Object.assign(item, across ? { along: h, across: w } : { along: w, across: h });
}

function entryItem(number) {
  const entry = data.entries[number], lines = entry.label.split("\n"), sign = entry.has_symbol, slot = entry.slot ? 25 : 0;
  const soft = ["variable", "placeholder", "constant", "result"].includes(entry.kind);
  const round = soft && !slot && lines.length === 1 && lines[0].length <= 12;
  const widths = lines.map((line, i) => (i ? widthOf(line) : widthOf(line, "600", sign ? SIGN : 13)));
  const width = Math.max(...widths, slot && widthOf("∂ " + entry.slot, "600") + 10);
  return sized({ id: "n" + number, number, entry, lines, round, soft, sign, slot, late: entry.details.opname === "getitem" },
    Math.max(40, round ? width * 1.12 + 24 : width + 26), Math.max(36, lines.length * ROW + 15 + (sign ? 4 : 0)) + slot);
}

function boxItem(number) {
  const box = data.boxes[number], width = widthOf(box.title, "600") + 48, item = { id: "b" + number, number, box };
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

/* Makes the items and links that are visible, and lays them out. A closed box has one link to or from each neighbor. */
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
  const rest = data.more ? into(root, sized({ id: "rest", lines: [data.more] }, Math.max(110, widthOf(data.more) + 24), 34)) : null;
  const ends = data.arrows.map((arrow) => [arrow.source === OMITTED ? rest : items[arrow.source], items[arrow.target]]);
  const keys = ends.map(([from, to]) => from.id + ">" + to.id), counts = new Map();
  for (const key of keys) counts.set(key, (counts.get(key) || 0) + 1);
  const known = new Set();
  links = [];
  data.arrows.forEach((arrow, number) => {
    const [from, to] = ends[number], outside = from.box || to.box;
    if ((from === to && from.box) || (outside && known.has(keys[number]))) return;
    known.add(keys[number]);
    const link = { from, to, loopCarried: arrow.loop_carried, number };
    if (!arrow.label || (outside && counts.get(keys[number]) > 1)) links.push(link);
    else if (arrow.loop_carried) links.push({ ...link, label: arrow.label });
    else {
      // A label is an item in the middle of its arrow, so that nothing is drawn over it.
      const label = into(commonBox(from, to, root), sized({ id: "l" + number, number, label: arrow.label }, widthOf(arrow.label, "600", 12) + 8, 18));
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
  const lowered = sign && lines.length > 1, top = y - ((lines.length - 1) * ROW) / 2 + (lowered ? 2 : 0);
  return lines.map((line, i) => draw("text", {
    x, y: top + i * ROW - (lowered && !i ? 3 : 0), class: i ? undefined : sign ? "first sign" : "first",
  }, line));
}

const rect = (kind, { x, y, w, h }, rx) => draw("rect", { class: kind, x, y, width: w, height: h, rx });
const ring = ({ x, y, w, h }) => rect("ring", { x: x - 5, y: y - 5, w: w + 10, h: h + 10 }, 8);

/* For screen readers; a sign is read as the word. */
function spoken({ entry, lines, sign }) {
  const { shape, dtype, value, opname } = entry.details;
  const facts = [shape && `shape ${shape}`, dtype, value && `value ${value.length > 60 ? value.slice(0, 60) + "…" : value}`];
  return [[sign ? opname : lines[0], ...lines.slice(1)].join(", "), LEGEND[entry.kind], ...facts].filter(Boolean).join(", ");
}

function drawEntry(item) {
  const { x, y, w, h, entry, slot } = item, bottom = { x: x + 7, y: y + h - 27, w: w - 14, h: 20 };
  return draw("g", {
    id: `node-${item.number}`, class: `node ${entry.kind}${entry.marked ? " marked" : ""}`, tabindex: 0, role: "button",
    "aria-label": spoken(item), "data-place": item.number,
  }, ring(item), item.round
    ? draw("ellipse", { class: "shape", cx: x + w / 2, cy: y + h / 2, rx: w / 2, ry: h / 2 })
    : rect("shape", item, item.soft ? Math.min(h / 2, 18) : 8),
  ...texts(item.lines, x + w / 2, y + (h - slot) / 2, item.sign),
  ...(slot ? [draw("g", { class: "derivative" }, rect("pill", bottom, item.soft ? 10 : 4), draw("text", { x: x + w / 2, y: bottom.y + 10 }))] : []));
}

function drawTitle(item) {
  const { x, y, w, box } = item, closed = !item.children;
  const inside = closed
    ? [rect("shape", item, 8), ...texts(item.lines, x + w / 2, y + item.h / 2)]
    : [rect("hit", { x, y, w, h: TITLE + 4 }), draw("text", { x: x + 12, y: y + 15, class: "first" }, "▾ " + box.title)];
  return draw("g", {
    id: `box-${item.number}`, class: `title${closed ? " closed" : ""}`, tabindex: 0, role: "button", "aria-expanded": String(!closed),
    "aria-label": `${box.count > 1 ? `part repeated ${box.count} times` : `scope ${box.title}`}${closed ? `, ${item.lines[1]}` : ""}`,
    "data-box": item.number,
  }, ring(closed ? item : { x: x + 5, y: y + 5, w: w - 10, h: TITLE - 4 }), ...inside);
}

function pathOf({ points }) {
  let path = `M${points[0]}`, [px, py] = points[0];
  for (const [x, y] of points.slice(1)) {
    const [mx, my] = [(px + x) / 2, (py + y) / 2];
    if (px === x && py === y) continue; // a path without a direction at its end has no head
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
  link.node = draw("path", {
    class: `arrow${link.loopCarried ? " loop-carried" : ""}`, d: link.back ? wayBack(link) : pathOf(link),
    "marker-end": link.begins ? undefined : "url(#head)", id: `edge-${link.number}${link.ends ? "-end" : ""}`,
  });
  if (!link.label) return [link.node];
  const [, [x, y], [nx, ny]] = link.points; // along the floor of the way back
  return [link.node, draw("text", { x: (x + nx) / 2, y: (y + ny) / 2, class: "cotangent" }, link.label)];
}

function show() {
  const root = compose(), boxes = [], nodes = [];
  labels = new Map();
  const walk = (item, depth) => {
    for (const child of item.children) {
      const middle = [child.x + child.w / 2, child.y + child.h / 2];
      if (child.label) {
        const { x, y, w, h } = child;
        labels.set(child.number, [
          draw("text", { x: middle[0], y: middle[1], class: "cotangent" }, child.label),
          ...(data.frames ? [draw("path", { class: "arrow bridge", d: across ? `M${middle[0]} ${y}v${h}` : `M${x} ${middle[1]}h${w}` })] : [])]);
        continue;
      }
      if (child.children) boxes.push(rect(`box${depth % 2 ? " inner" : ""}${child.box.count > 1 ? " several" : ""}`, child, 10));
      child.node = child.entry ? drawEntry(child) : child.box ? drawTitle(child) : draw("g", { id: "rest" }, ...texts(child.lines, ...middle));
      nodes.push(child);
      if (child.children) walk(child, depth + 1);
    }
  };
  walk(root, 0);
  const along = (item) => (across ? item.y * 1e6 + item.x : item.x * 1e6 + item.y); // the order of Tab: that of computation
  nodes.sort((one, other) => along(one) - along(other));
  view.replaceChildren(...boxes, ...links.flatMap(drawLink), ...[...labels.values()].flat(), ...nodes.map(({ node }) => node));
  byId("open").disabled = !data.boxes.some((box) => box.closed);
  byId("close").disabled = !data.boxes.some((box) => !box.closed);
  mark();
  drawn();
}
let drawn = () => {}; // a hook for animations

/* -------------------------------------------------------------------------------- boxes, open and closed */

/* Opens or closes a box, which keeps its place on the screen. */
function toggle(number) {
  const before = boxItems[number];
  data.boxes[number].closed = !data.boxes[number].closed;
  show();
  const after = boxItems[number];
  move((before.x - after.x) * eye.scale, (before.y - after.y) * eye.scale);
  after.node.focus({ preventScroll: true });
}

function setAll(closed) {
  for (const box of data.boxes) box.closed = closed;
  show();
  fit();
}

/* Opens the closed boxes around an entry. */
function reveal(number) {
  const hiding = boxesAround(data.entries[number].box).filter((box) => data.boxes[box].closed);
  for (const box of hiding) data.boxes[box].closed = false;
  if (hiding.length) show();
}

/* ------------------------------------------------------------------------------------- panel and search */

let chosen = null;

function mark() {
  for (const [number, item] of items.entries()) {
    if (!item.entry) continue;
    item.node.classList.toggle("chosen", number === chosen);
    item.node.classList.toggle("found", search.found.includes(number));
  }
  for (const { from, to, node } of links)
    node.classList.toggle("near", chosen !== null && [from, to].some((end) => end.entry && end.number === chosen));
}

function buttonsTo(numbers) {
  return [...new Set(numbers)].map((number) => (number === OMITTED ? element("span", {}, data.more)
    : button(data.entries[number].details.title, "Open this node", () => go(number))));
}

function describe(number) {
  const entry = data.entries[number], { title, name, opname, formula, value, shape, dtype, cotangent, line, code } = entry.details;
  const list = element("dl");
  const fact = (term, ...content) => list.append(element("dt", {}, term), element("dd", {}, ...content));
  if (formula) fact("Formula", element("span", { class: "formula" }, (name && opname ? `${title} = ` : "") + formula));
  if (value) fact("Value", element("pre", {}, value));
  if (shape) fact("Shape and dtype", `${shape} ${dtype}`);
  if (cotangent) fact("Cotangent", element("pre", {}, cotangent));
  if (line) fact("Made at", line, ...(code ? [element("pre", {}, code)] : []));
  if (entry.box !== null) fact("In", boxesAround(entry.box).map((box) => data.boxes[box].title).join(" / "));
  if (operands[number].length) fact("Computed from", ...buttonsTo(operands[number]));
  if (uses[number].length) fact("Used by", ...buttonsTo(uses[number]));
  panel.replaceChildren(
    button("×", "Close panel", dismiss, { class: "leave", "aria-label": "Close panel" }), element("h2", { id: "panel-title" }, title),
    element("p", { class: "kind" }, [opname, LEGEND[entry.kind]].filter(Boolean).join(" · ")), list);
  panel.scrollTop = 0;
}

function choose(number) {
  chosen = number;
  describe(number);
  panel.hidden = false;
  hideHint();
  mark();
  refit();
  bringIn(items[number]);
}

/* To another node, from the panel. */
function go(number) {
  reveal(number);
  choose(number);
  items[number].node.focus({ preventScroll: true });
}

dismiss = () => {
  const last = chosen;
  chosen = null;
  panel.hidden = true;
  mark();
  refit();
  if (last !== null) items[last].node.focus({ preventScroll: true });
};

Object.assign(search, {
  texts: data.entries.map((entry) => [entry.label, entry.details.name, entry.details.opname].join("\n")),
  mark,
  show(number) {
    reveal(number);
    mark();
    moved = true; // the match stays in view
    bringIn(items[number], true);
    if (!panel.hidden) choose(number);
  },
});

/* ------------------------------------------------------------------------------------------- listeners */

const placeOf = (target) => target.closest?.("[data-place]")?.dataset.place;
const boxOf = (target) => target.closest?.("[data-box]")?.dataset.box;

makeMovable(byId("graph"), byId("view"), (target) => {
  if (placeOf(target) !== undefined) choose(+placeOf(target));
  else if (boxOf(target) !== undefined) toggle(+boxOf(target));
  else return false;
  return true;
});

function hintAt(number, x, y) {
  showHint(data.tooltips[number], x, y);
}
view.addEventListener("pointerover", (event) => {
  if (placeOf(event.target) !== undefined && event.pointerType !== "touch") hintAt(+placeOf(event.target), event.clientX, event.clientY);
});
view.addEventListener("pointerout", hideHint);
// Not on the view: a listener for the focus would make it one of the stops of Tab.
graph.addEventListener("focusin", ({ target }) => {
  if (target === graph || !target.matches(":focus-visible")) return;
  const item = placeOf(target) !== undefined ? items[+placeOf(target)] : boxItems[+boxOf(target)];
  bringIn(item.children ? { ...item, h: TITLE, w: 60 } : item);
  const frame = target.getBoundingClientRect();
  if (item.entry && panel.hidden) hintAt(item.number, frame.left, frame.bottom - 10);
});
graph.addEventListener("focusout", hideHint);

addTools(
  button("−", "Zoom out (−)", () => zoomByReader(0.8), { "aria-label": "Zoom out" }),
  button("+", "Zoom in (+)", () => zoomByReader(1.25), { "aria-label": "Zoom in" }),
  button("Fit", "Show all (0)", fit),
  button("Turn", "From left to right, or from top to bottom", () => {
    across = !across;
    chosenByReader = true;
    show();
    fit();
  }),
  ...[["Open all", "Open all boxes", false, "open"], ["Close all", "Close all boxes", true, "close"]].map(([text, title, closed, id]) =>
    button(text, title, () => setAll(closed), { id, hidden: data.boxes.length ? undefined : "" })));

showLegend(data.legend);

/* On a narrow screen the graph lies in the direction in which it is larger, unless the reader has chosen one. */
function turnToFit() {
  if (chosenByReader) return;
  const asked = data.direction === "TB";
  const lying = (direction) => {
    if (across !== direction) {
      across = direction;
      show();
    }
    return fitting();
  };
  const before = lying(asked);
  if (innerWidth <= NARROW && lying(!asked) <= before) lying(asked);
}

/* Everything if it is legible, otherwise the result. */
let legible = 0.3, focus = () => bringIn(items[0], true);
function start() {
  const { width, height } = graph.getBoundingClientRect();
  if (!width || !height) return; // within a hidden tab
  if (panel.hidden) turnToFit();
  fit();
  if (eye.scale < legible) focus();
}

/* Fits again when the size of the drawing has changed: with the window, the panel, or a tab that was hidden. */
let fitted = "";
function refit() {
  const { width, height } = graph.getBoundingClientRect(), now = `${width} ${height}`;
  if (now === fitted) return;
  fitted = now;
  if (moved) return;
  start();
  if (chosen !== null) bringIn(items[chosen]);
}

show();
start();
new ResizeObserver(refit).observe(graph);
