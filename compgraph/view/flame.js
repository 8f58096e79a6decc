/* Flame graphs: a frame is as wide as it took long, with its parts below it; a click makes it as wide as the page. */
"use strict";

const THINNEST = 0.0008; // parts of the width; thinner frames are drawn once the reader zooms in
const frames = [data];   // all frames, outer ones first
let shown = data;
for (const frame of frames) for (const part of frame.parts) frames.push(Object.assign(part, { around: frame }));

main.append(
  element("div", { id: "flame", role: "group", "aria-label": "Flame graph: each frame is as wide as it took long; its parts are below it" }),
  element("p", { id: "announcement", role: "status", "aria-live": "polite" }));
const flame = byId("flame"), announcement = byId("announcement");

function words(frame) {
  const share = data.seconds ? ` (${(100 * frame.seconds / data.seconds).toFixed(1)} % of the whole)` : "";
  const parts = [`${inUnits(frame.seconds, TIME)}${share}`];
  if (frame.calls) parts.push(`${frame.calls} ${frame.calls === 1 ? "call" : "calls"}`);
  if (frame.bytes) parts.push(`${inUnits(frame.bytes, BYTES)} allocated`);
  return `${frame.name}: ${parts.join(", ")}${frame.detail && frame.detail !== frame.name ? "\n" + frame.detail : ""}`;
}

function add(frame, left, width, row, kind) {
  const isWide = width * flame.clientWidth > 26, height = innerWidth <= NARROW ? 29 : 25;
  const made = button(isWide ? frame.name : "", words(frame), () => show(frame), {
    class: `frame ${frame.kind} ${kind}`, "aria-label": words(frame), "data-frame": frames.indexOf(frame),
    style: `left: ${100 * left}%; width: ${100 * width}%; top: ${row * height}px; height: ${height - 1}px${isWide ? "" : "; padding: 0"}`,
  });
  made.onmouseenter = made.onfocus = () => { announcement.textContent = words(frame); };
  flame.append(made);
  flame.style.height = `${Math.max(parseFloat(flame.style.height), (row + 1) * height)}px`;
}

function drawFrames() {
  flame.replaceChildren();
  flame.style.height = 0;
  const above = [];
  for (let each = shown.around; each; each = each.around) above.unshift(each);
  above.forEach((frame, row) => add(frame, 0, 1, row, "around"));
  const queue = [[shown, 0, 1, above.length]];
  for (const [frame, left, width, row] of queue) {
    add(frame, left, width, row, frame === shown ? "chosen" : "");
    let at = left;
    // Frames are timed one by one; parts whose sum exceeds their frame by rounding are squeezed.
    const sum = frame.parts.reduce((total, part) => total + part.seconds, 0), scale = width / Math.max(frame.seconds, sum, 1e-12);
    for (const part of frame.parts) {
      const wide = part.seconds * scale;
      if (wide > THINNEST) queue.push([part, at, wide, row + 1]);
      at += wide;
    }
  }
  search.mark();
}

function show(frame) {
  const hadFocus = flame.contains(document.activeElement);
  shown = frame;
  drawFrames();
  announcement.textContent = words(frame);
  if (hadFocus) flame.querySelector(".chosen").focus();
}

Object.assign(search, {
  texts: frames.map((frame) => `${frame.name} ${frame.detail}`),
  mark() { for (const each of flame.children) each.classList.toggle("found", search.found.includes(+each.dataset.frame)); },
  show(number) { show(frames[number]); },
});
dismiss = () => show(data);
addTools(button("Show all", "Show the whole (Escape)", dismiss));
showLegend(["forward", "backward", "scope", "rest"]);
addEventListener("resize", drawFrames);
show(data);
