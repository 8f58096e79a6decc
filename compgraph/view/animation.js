/* Animations: a graph on which derivatives arrive frame by frame, the equations of the frame, and the controls. */
"use strict";

const { frames, seconds } = data;
const last = frames.length - 1;
let current = 0, timer = null;

/* ---------------------------------------------------------------------------------------------- the player */

const ICONS = { first: "M6 5v14M18 5l-7 7 7 7", back: "M15 5l-7 7 7 7", play: "M8 5l11 7-11 7z", forward: "M9 5l7 7-7 7", last: "M18 5v14M6 5l7 7-7 7" };
const TITLES = { first: "First frame (Home)", back: "Back (left arrow)", play: "Play or pause (space)", forward: "Forward (right arrow)", last: "Last frame (End)" };
const ACTIONS = { first: () => goTo(0), back: () => goTo(current - 1), play: () => playOrPause(), forward: () => goTo(current + 1), last: () => goTo(last) };
const shaped = (d, kind) => draw("path", { d, class: kind });
const icon = (id) => draw("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" },
  ...(id === "play" ? [shaped(ICONS.play, "when-paused"), shaped("M8 5v14M16 5v14", "when-playing")] : [shaped(ICONS[id], "line")]));

/* A token of an equation: text, the name of a node, an exponent, or a partial derivative. */
function tokenElement([kind, text, below]) {
  if (kind !== "partial") return element({ text: "span", name: "i", exponent: "sup" }[kind], {}, text);
  return element("span", { class: "fraction" }, ...[text, below].map((name) => element("span", {}, "∂", element("i", {}, name))));
}

const lineElement = ({ text, tokens }) => element("p", { class: "math", role: "math", "aria-label": text }, ...tokens.map(tokenElement));
const slider = element("input", { type: "range", id: "slider", min: 0, max: last, value: 0, step: 1, "aria-label": "Frame" });
slider.addEventListener("input", () => goTo(Number(slider.value)));
main.after(element("section", { id: "player", "aria-label": "Frames" },
  element("div", { class: "controls", role: "group", "aria-label": "Frames" },
    ...Object.keys(ICONS).map((id) => button(icon(id), TITLES[id], ACTIONS[id], { id, "aria-label": TITLES[id].replace(/ \(.*| or pause.*/, "") })),
    slider, element("output", { id: "count", for: "slider" })),
  element("ol", { id: "steps" }, ...frames.map((frame) => element("li", {}, element("p", { class: "words" }, frame.words), ...frame.lines.map(lineElement)))),
  element("p", { id: "announcement", class: "unseen", role: "status", "aria-live": "polite" })));
const play = byId("play"), announcement = byId("announcement"), steps = [...byId("steps").children];
showLegend(["active", data.mode === "reverse" ? "cotangent" : "tangent"]);
graph.dataset.mode = data.mode;

/* ---------------------------------------------------------------------------------------------- the frames */

/* The whole state follows from the number of the frame, so that going back is like going forward. */
function update() {
  const passed = new Set(), derivatives = new Map(), now = frames[current];
  for (const frame of frames.slice(0, current + 1)) {
    if (frame.arrow !== null) passed.add(frame.arrow);
    if (frame.target !== null) derivatives.set(frame.target, frame.derivative);
  }
  for (const { node, number } of links) {
    node.classList.toggle("passed", passed.has(number));
    node.classList.toggle("active", number === now.arrow);
  }
  for (const [number, [text, bridge]] of labels) {
    text.toggleAttribute("hidden", !passed.has(number));
    bridge.toggleAttribute("hidden", passed.has(number));
    text.classList.toggle("active", number === now.arrow);
  }
  for (const { node } of items) node.classList.remove("active", "target");
  if (now.node !== null) items[now.node].node.classList.add("active");
  if (now.target !== null) items[now.target].node.classList.add("target");
  for (const [number, { slot, node }] of items.entries()) {
    if (!slot) continue;
    node.querySelector(".derivative").classList.toggle("empty", !derivatives.has(number));
    node.querySelector(".derivative text").textContent = derivatives.has(number) ? `∂ ${derivatives.get(number)}` : "";
  }
}
drawn = update;

/* Keeps the edge at work visible where the graph is larger than its frame. */
function follow() {
  const { arrow, target } = frames[current];
  if (eye.scale < legible) zoom(legible / eye.scale);
  const seen = [...links.filter(({ number }) => number === arrow).flatMap(({ from, to }) => [from, to]), ...(target === null ? [] : [items[target]])];
  if (!seen.length) return;
  const [x, y] = ["x", "y"].map((key) => Math.min(...seen.map((item) => item[key])));
  bringIn({ x, y, w: Math.max(...seen.map((item) => item.x + item.w)) - x, h: Math.max(...seen.map((item) => item.y + item.h)) - y });
}
legible = 0.7;
focus = follow;

function showFrame(number) {
  current = Math.max(0, Math.min(last, number));
  steps.forEach((step, place) => { step.hidden = place !== current; });
  const count = `${current + 1} of ${frames.length}`;
  slider.value = current;
  slider.setAttribute("aria-valuetext", `frame ${count}`);
  byId("count").textContent = count;
  byId("first").disabled = byId("back").disabled = current === 0;
  byId("forward").disabled = byId("last").disabled = current === last;
  announcement.textContent = `Frame ${count}. ${frames[current].description}`;
  update();
  follow();
}

function setPlaying(isPlaying) {
  clearInterval(timer);
  timer = isPlaying ? setInterval(() => {
    showFrame(current + 1);
    if (current === last) setPlaying(false);
  }, seconds * 1000) : null;
  play.classList.toggle("playing", isPlaying);
  play.setAttribute("aria-label", isPlaying ? "Pause" : "Play");
  announcement.setAttribute("aria-live", isPlaying ? "off" : "polite");
}

function playOrPause() {
  if (timer === null && current === last) showFrame(0);
  setPlaying(timer === null);
}

function goTo(number) {
  setPlaying(false);
  showFrame(number);
}

const STEPS_BY_KEY = { ArrowLeft: ACTIONS.back, ArrowRight: ACTIONS.forward, Home: ACTIONS.first, End: ACTIONS.last, " ": ACTIONS.play };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target === query || !(event.key in STEPS_BY_KEY)) return;
  if (event.key === " " && event.target.closest("button, [role=button]")) return; // it presses the button
  event.preventDefault();
  event.stopPropagation();
  STEPS_BY_KEY[event.key]();
}, true);

showFrame(0);
start();
