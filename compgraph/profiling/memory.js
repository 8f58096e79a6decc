"use strict";
const curve = JSON.parse(document.getElementById("data").textContent);
const plot = document.getElementById("plot"), cursor = document.getElementById("cursor"), end = Number(plot.dataset.end);

function rounded(number, units) {
  for (const [unit, scale] of units)
    if (number >= scale) return `${Number((number / scale).toPrecision(3))} ${unit}`;
  return number ? `${Number((number / units.at(-1)[1]).toPrecision(3))} ${units.at(-1)[0]}` : "0";
}

plot.onpointermove = plot.onpointerdown = (event) => {
  const frame = plot.getBoundingClientRect(), at = Math.min(1, Math.max(0, (event.clientX - frame.left) / frame.width));
  let bytes = 0;
  for (const [when, total] of curve) { if (when > at) break; bytes = total; }
  cursor.hidden = false;
  cursor.style.left = `${100 * at}%`;
  cursor.classList.toggle("right", at > 0.5);
  const size = rounded(bytes, [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]]);
  cursor.firstElementChild.textContent = `${size} at ${rounded(at * end, [["s", 1], ["ms", 1e-3], ["µs", 1e-6]])}`;
};
plot.onpointerleave = () => { cursor.hidden = true; };
