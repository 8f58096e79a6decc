"use strict";
const whole = JSON.parse(document.getElementById("data").textContent);
const flame = document.getElementById("flame"), said = document.getElementById("said"), query = document.getElementById("query");
const NARROW = 0.0008;  // frames that are a smaller part of the width are not drawn until one zooms in
let shown = whole;

for (const queue = [[whole, null]]; queue.length;) {
  const [frame, around] = queue.pop();
  frame.around = around;
  for (const part of frame.parts) queue.push([part, frame]);
}

function time(seconds) {
  for (const [unit, scale] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]])
    if (seconds >= scale) return `${Number((seconds / scale).toPrecision(3))} ${unit}`;
  return `${Math.round(seconds * 1e9)} ns`;
}

function size(bytes) {
  for (const [unit, scale] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]])
    if (bytes >= scale) return `${Number((bytes / scale).toPrecision(3))} ${unit}`;
  return `${bytes} B`;
}

function words(frame) {
  const share = whole.seconds ? ` (${(100 * frame.seconds / whole.seconds).toFixed(1)} % of the whole)` : "";
  const parts = [`${time(frame.seconds)}${share}`];
  if (frame.calls) parts.push(`${frame.calls} ${frame.calls === 1 ? "call" : "calls"}`);
  if (frame.bytes) parts.push(`${size(frame.bytes)} allocated`);
  return `${frame.name}: ${parts.join(", ")}${frame.detail && frame.detail !== frame.name ? "\n" + frame.detail : ""}`;
}

function add(frame, left, width, row, isAround) {
  const box = document.createElement("button");
  box.className = `frame ${frame.kind}`;
  if (isAround) box.classList.add("around");
  if (frame === shown) box.classList.add("chosen");
  box.frame = frame;
  box.style.left = `${100 * left}%`;
  box.style.width = `${100 * width}%`;
  box.style.top = `${row * (innerWidth <= 640 ? 29 : 25)}px`;
  if (width * flame.clientWidth > 26) box.textContent = frame.name; else box.style.padding = 0;
  box.setAttribute("aria-label", words(frame));
  box.title = words(frame);
  box.onclick = () => show(frame);
  box.onmouseenter = box.onfocus = () => { said.textContent = words(frame); };
  flame.append(box);
}

function draw() {
  flame.replaceChildren();
  const above = [];
  for (let each = shown.around; each; each = each.around) above.unshift(each);
  above.forEach((frame, row) => add(frame, 0, 1, row, true));
  let last = above.length;
  const queue = [[shown, 0, 1, above.length]];
  for (const [frame, left, width, row] of queue) {
    add(frame, left, width, row, false);
    last = Math.max(last, row);
    let at = left;
    // What operations took is measured frame by frame; parts that would stick out by rounding are squeezed.
    const sum = frame.parts.reduce((total, part) => total + part.seconds, 0), scale = width / Math.max(frame.seconds, sum, 1e-12);
    for (const part of frame.parts) {
      const wide = part.seconds * scale;
      if (wide > NARROW) queue.push([part, at, wide, row + 1]);
      at += wide;
    }
  }
  mark();
  flame.style.height = `${(last + 1) * (innerWidth <= 640 ? 29 : 25)}px`;
}

function mark() {
  const text = query.value.trim().toLowerCase();
  for (const box of flame.children)
    box.classList.toggle("found", text !== "" && `${box.frame.name} ${box.frame.detail}`.toLowerCase().includes(text));
}

function show(frame) {
  const hadFocus = flame.contains(document.activeElement);
  shown = frame;
  draw();
  said.textContent = words(frame);
  if (hadFocus) flame.querySelector(".chosen").focus();
}

document.getElementById("whole").onclick = () => show(whole);
document.onkeydown = (event) => { if (event.key === "Escape") show(whole); };
query.oninput = () => {
  mark();
  said.textContent = query.value.trim() ? `${flame.querySelectorAll(".found").length} found` : words(shown);
};
addEventListener("resize", draw);
show(whole);
