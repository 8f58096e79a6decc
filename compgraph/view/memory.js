/* Memory over time: the bytes that are alive as an area, the sweeps behind it, the peak, and the operations that held it. */
"use strict";

const { curve, end, peak, peak_at: peakAt, sweeps, holders } = data;
const TOP = 1.1 * Math.max(peak, 1); // bytes at the upper edge
const percent = (part, whole) => `${(100 * part / whole).toFixed(2)}%`;
const shareOf = (bytes) => `${inUnits(bytes, BYTES)}, ${bytes / peak >= 0.01 ? Math.round(100 * bytes / peak) : "< 1"} %`;

/* The outline of the area: bytes stay as they are until the next point. */
function areaOf() {
  let path = "M0,1000", before = 0;
  for (const [at, total] of curve) {
    const x = 1000 * at / end;
    path += `L${x.toFixed(2)},${(1000 - 1000 * before / TOP).toFixed(2)}V${(1000 - 1000 * total / TOP).toFixed(2)}`;
    before = total;
  }
  return path + `H1000V1000Z`;
}

const marks = [0, 0.5, 1];
main.append(
  element("p", { class: "muted" }, `Bytes of results and cotangents that are alive. At the peak, after ${inUnits(peakAt, TIME)}, the largest holder was `,
    element("b", {}, data.largest), "."),
  element("div", { id: "plot" },
    draw("svg", { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", role: "img", "aria-label": `${document.title}; the largest holder was ${data.largest}` },
      ...sweeps.map(([from, to]) => draw("rect", { class: "sweep", x: 1000 * from / end, y: 0, width: Math.max(1000 * (to - from) / end, 0.5), height: 1000 })),
      draw("path", { class: "area", d: areaOf() })),
    ...marks.map((part) => element("span", { class: "level", style: `bottom: ${percent(part * peak, TOP)}` }, inUnits(peak * part, BYTES))),
    ...marks.map((part) => element("span", { class: "tick", style: `left: ${100 * part}%; transform: translateX(-${100 * part}%)` }, inUnits(end * part, TIME))),
    element("div", { id: "peak", class: peakAt < end / 2 ? "" : "right", style: `left: ${percent(peakAt, end)}` }, element("span", {}, `peak ${inUnits(peak, BYTES)}`)),
    element("div", { id: "cursor", hidden: "" }, element("span"))),
  element("h2", {}, "Memory at the peak"),
  element("ol", { class: "holders" }, ...holders.map(({ name, where, place, code, kind, bytes }) => element("li", {},
    element("span", { class: `bar ${kind}`, style: `width: ${percent(bytes, peak)}` }), element("span", { class: "share" }, shareOf(bytes)),
    element("b", {}, name), " ", element("span", { class: "muted", title: place }, where), element("code", {}, code)))));

const plot = byId("plot"), cursor = byId("cursor");
plot.onpointermove = plot.onpointerdown = (event) => {
  const frame = plot.getBoundingClientRect(), part = Math.min(1, Math.max(0, (event.clientX - frame.left) / frame.width));
  const [, bytes] = curve.findLast(([at]) => at <= part * end) || [0, 0];
  cursor.hidden = false;
  cursor.style.left = `${100 * part}%`;
  cursor.classList.toggle("right", part > 0.5);
  cursor.firstElementChild.textContent = `${inUnits(bytes, BYTES)} at ${inUnits(part * end, TIME)}`;
};
plot.onpointerleave = () => { cursor.hidden = true; };

const rows = [...document.querySelectorAll(".holders li")];
Object.assign(search, {
  texts: rows.map((row) => row.textContent),
  mark() { rows.forEach((row, number) => row.classList.toggle("found", search.found.includes(number))); },
  show(number) { rows[number].scrollIntoView({ block: "nearest" }); },
});
showLegend(["alive", "sweep"]);
