/* Lays a graph out in layers, boxes within boxes, from operands to results.

   Coordinates are along the arrows (a, "along") and across them (c, "across"); graph.js maps them to x and y. Each box is laid
   out by itself, inner ones first. Where an arrow crosses the border of a box, the box has a port, which is the end of the
   arrow for the level above. */
"use strict";

const GAP = 34;        // between layers, at least
const LABEL_GAP = 18;  // between a layer with labels of arrows and its neighbors
const BETWEEN = 14;    // between neighbors in a layer
const PAD = 14;        // between the border of a box and its content
const TITLE = 24;      // height of the title of a box
const SWEEPS = 10;     // over all layers, to find an order with few crossings
const STEPS = 30;      // over all layers, to draw arrows straight

/* root: {children}; an item: {parent, along, across, children (of an open box), titleAlong, titleAcross}.
   arrows: {from, to, loopCarried}; loop-carried arrows lead back. Items get a and c, boxes along and across, arrows points. */
function layOut(root, arrows) {
  prepare(root);
  arrows.forEach((arrow, number) => divide(arrow, number, root));
  arrange(root);
  place(root, 0, 0);
  for (const arrow of arrows) {
    arrow.points = arrow.back ? roundabout(arrow) : arrow.route.flatMap(
      ([box, segment]) => segment.points.map(([a, c]) => [a + box.a, c + box.c]));
  }
}

function prepare(box) {
  Object.assign(box, { segments: new Map(), ins: new Map(), outs: new Map(), backs: 0 });
  for (const child of box.children) if (child.children) prepare(child);
}

function around(item) {
  const boxes = [];
  for (let box = item.parent; box; box = box.parent) boxes.push(box);
  return boxes;
}

/* An arrow becomes one segment in each box it passes. */
function divide(arrow, number, root) {
  const { from, to } = arrow;
  const outer = around(to), common = around(from).find((box) => outer.includes(box)) || root;
  arrow.within = common;
  if (arrow.loopCarried || from === to) {
    arrow.back = true;
    common.backs += 1;
    return;
  }
  arrow.route = [];
  let below = from;
  for (let box = from.parent; box !== common; below = box, box = box.parent)
    arrow.route.push([box, segment(box, "out" + from.id, below, port(box.outs, from), from)]);
  const inner = outer.slice(0, outer.indexOf(common)).reverse();
  const targets = [...inner, to];
  const name = (target) => (target === to ? "to" + number : "in" + from.id + "," + target.id);
  arrow.route.push([common, segment(common, name(targets[0]), below, targets[0], from)]);
  inner.forEach((box, i) =>
    arrow.route.push([box, segment(box, name(targets[i + 1]), port(box.ins, from), targets[i + 1], from)]));
}

function port(ports, from) {
  if (!ports.has(from)) ports.set(from, { port: true, along: 0, across: 0 });
  return ports.get(from);
}

function segment(box, key, start, end, from) {
  if (!box.segments.has(key)) box.segments.set(key, { start, end, from });
  return box.segments.get(key);
}

function arrange(box) {
  for (const child of box.children) if (child.children) arrange(child);
  const items = [...box.ins.values(), ...box.children, ...box.outs.values()];
  const segments = [...box.segments.values()];
  const ranks = ranked(box, items, segments);
  const layers = [];
  const vertexOf = new Map();
  const add = (item, rank) => {
    const vertex = { item, rank, size: item ? item.across : 2, before: [], after: [], c: 0 };
    (layers[rank] = layers[rank] || []).push(vertex);
    return vertex;
  };
  for (const item of items) vertexOf.set(item, add(item, ranks.get(item)));
  for (const each of segments) chain(each, vertexOf, add, ends(segments));
  const full = layers.filter(Boolean);
  sort(full);
  straighten(full);
  measure(box, full, segments, vertexOf);
}

/* The segments that end at each target: the arrows of an operation arrive side by side, in the order of its operands. */
function ends(segments) {
  if (!segments.ends) {
    segments.ends = new Map();
    for (const each of segments) segments.ends.set(each.end, [...(segments.ends.get(each.end) || []), each]);
  }
  return segments.ends;
}

/* The layer of each item: the one after its operands; leaves and `late` items are next to their first use. */
function ranked(box, items, segments) {
  const after = new Map(items.map((item) => [item, []])), before = new Map(items.map((item) => [item, []]));
  for (const each of segments) after.get(each.start).push(each);
  const seen = new Map(), finished = [];
  for (const item of items) {
    const stack = seen.has(item) ? [] : [[item, 0]];
    seen.set(item, seen.get(item) || 1);
    while (stack.length) {
      const top = stack[stack.length - 1];
      const next = after.get(top[0])[top[1]++];
      if (!next) {
        seen.set(top[0], 2);
        finished.push(stack.pop()[0]);
      } else if (!seen.has(next.end)) {
        seen.set(next.end, 1);
        stack.push([next.end, 0]);
      } else if (seen.get(next.end) === 1) {
        next.turned = true; // closed boxes can make cycles
      }
    }
  }
  for (const each of segments) if (!each.turned) before.get(each.end).push(each);
  const ranks = new Map();
  const first = box.ins.size ? 1 : 0;
  for (const item of finished.reverse())
    ranks.set(item, Math.max(first, ...before.get(item).map((each) => ranks.get(each.start) + 1)));
  for (const item of finished.slice().reverse()) {
    const uses = after.get(item).filter((each) => !each.turned);
    if ((item.late || !before.get(item).length) && uses.length) ranks.set(item, Math.min(...uses.map((each) => ranks.get(each.end))) - 1);
  }
  for (const item of box.ins.values()) ranks.set(item, 0);
  const last = Math.max(0, ...ranks.values());
  for (const item of box.outs.values()) ranks.set(item, last + 1);
  return ranks;
}

/* The offset at which a segment leaves or reaches an item, from the start of the item. */
function leaving(each) {
  const { start, from } = each;
  return start.children ? start.outs.get(from).at : start.across / 2;
}

function reaching(each, all) {
  const { end, from } = each;
  if (end.children) return end.ins.get(from).at;
  const together = all.get(end);
  return (end.across * (together.indexOf(each) + 1)) / (together.length + 1);
}

/* A segment across several layers has a vertex in each. */
function chain(each, vertexOf, add, all) {
  const start = vertexOf.get(each.start), end = vertexOf.get(each.end);
  each.leaves = leaving(each);
  each.reaches = reaching(each, all);
  each.chain = [start];
  if (each.turned) {
    each.chain.push(end);
    return;
  }
  let last = start, off = each.leaves;
  const join = (vertex, reach) => {
    last.after.push({ vertex, own: off, other: reach });
    vertex.before.push({ vertex: last, own: reach, other: off });
  };
  for (let rank = start.rank + 1; rank < end.rank; rank++) {
    const vertex = add(null, rank);
    join(vertex, 1);
    each.chain.push(vertex);
    [last, off] = [vertex, 1];
  }
  join(end, each.reaches);
  each.chain.push(end);
}

/* ------------------------------------------------------------------------------------------------ order */

function sort(layers) {
  depthFirst(layers);
  let best = null, fewest = Infinity;
  for (let sweep = 0; sweep <= SWEEPS; sweep++) {
    layers.forEach((layer) => layer.forEach((vertex, i) => { vertex.i = i; }));
    const crossings = layers.reduce((sum, layer) => sum + crossed(layer), 0);
    if (crossings < fewest) [fewest, best] = [crossings, layers.map((layer) => layer.slice())];
    if (!crossings || sweep === SWEEPS) break;
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : layers.slice().reverse()) {
      const side = down ? "before" : "after";
      const key = new Map(layer.map((v, i) => [v, v[side].length ? mean(v[side].map((n) => at(n.vertex, n.other))) : i]));
      layer.sort((one, other) => key.get(one) - key.get(other));
      layer.forEach((vertex, i) => { vertex.i = i; });
    }
  }
  best.forEach((layer, i) => layers.splice(i, 1, layer));
}

const mean = (numbers) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
const at = (vertex, offset) => vertex.i + offset / (vertex.size + 1);

/* The initial order: that of a depth-first search from the results. */
function depthFirst(layers) {
  const seen = new Map();
  for (const layer of layers.slice().reverse()) {
    for (const end of layer) {
      const stack = [end];
      while (stack.length) {
        const vertex = stack.pop();
        if (seen.has(vertex)) continue;
        seen.set(vertex, seen.size);
        const near = vertex.before.slice().sort((one, other) => other.own - one.own);
        stack.push(...near.map((each) => each.vertex));
      }
    }
  }
  for (const layer of layers) layer.sort((one, other) => seen.get(one) - seen.get(other));
}

/* The number of crossings between the arrows that leave a layer. */
function crossed(layer) {
  const ends = [];
  for (const vertex of layer)
    for (const next of vertex.after.slice().sort((one, other) => one.own - other.own || at(one.vertex, one.other) - at(other.vertex, other.other)))
      ends.push(at(next.vertex, next.other));
  const sorted = [];
  let count = 0;
  for (const end of ends) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= end) low = middle + 1; else high = middle;
    }
    count += sorted.length - low;
    sorted.splice(low, 0, end);
  }
  return count;
}

/* ----------------------------------------------------------------------------------------------- places */

function straighten(layers) {
  for (const layer of layers) settle(layer, layer.map(() => 0), layer.map(() => 1));
  for (let step = 0; step < STEPS; step++) {
    const sides = step > STEPS - 6 ? ["before", "after"] : step % 2 ? ["after"] : ["before"];
    for (const layer of step % 2 ? layers.slice().reverse() : layers) {
      const near = layer.map((vertex) => sides.flatMap((side) => vertex[side]));
      const wanted = layer.map((v, i) => (near[i].length ? mean(near[i].map((n) => n.vertex.c + n.other - n.own)) : v.c));
      settle(layer, wanted, layer.map((vertex) => (vertex.item ? 1 : 4)));
    }
  }
  const least = Math.min(...layers.flat().map((vertex) => vertex.c));
  for (const vertex of layers.flat()) vertex.c -= least;
}

/* The positions nearest to the wanted ones that keep order and distance (isotonic regression by pool-adjacent-violators). */
function settle(layer, wanted, weights) {
  const blocks = [];
  let shift = 0;
  layer.forEach((vertex, i) => {
    if (i) shift += layer[i - 1].size + (vertex.item || layer[i - 1].item ? BETWEEN : 8);
    blocks.push({ sum: (wanted[i] - shift) * weights[i], weight: weights[i], members: [[vertex, shift]] });
    while (blocks.length > 1) {
      const last = blocks[blocks.length - 1], other = blocks[blocks.length - 2];
      if (other.sum / other.weight <= last.sum / last.weight) break;
      blocks.pop();
      other.sum += last.sum;
      other.weight += last.weight;
      other.members.push(...last.members);
    }
  });
  for (const block of blocks) for (const [vertex, own] of block.members) vertex.c = block.sum / block.weight + own;
}

/* Sizes and places within a box, and the points of its segments. */
function measure(box, layers, segments, vertexOf) {
  const pad = box.parent || box.titleAlong !== undefined ? PAD : 0;
  const startAlong = pad + (box.titleAlong || 0), startAcross = pad + (box.titleAcross || 0);
  const widths = layers.map((layer) => Math.max(...layer.map((vertex) => (vertex.item ? vertex.item.along : 0))));
  const starts = [];
  let along = box.ins.size ? 0 : startAlong;
  layers.forEach((layer, i) => {
    starts.push(along);
    along += widths[i] + (i < layers.length - 1 ? gapAfter(layer, layers[i + 1], i === 0 && box.ins.size ? startAlong : 0) : 0);
  });
  for (const vertex of layers.flat()) {
    vertex.layer = layers.findIndex((layer) => layer[0].rank === vertex.rank);
    vertex.c += startAcross;
    if (vertex.item) {
      vertex.item.a = starts[vertex.layer] + (widths[vertex.layer] - vertex.item.along) / 2;
      vertex.item.c = vertex.c;
    }
  }
  const content = Math.max(0, ...layers.flat().map((vertex) => vertex.c + vertex.size));
  box.across = Math.max(content + pad + (box.backs ? 18 : 0), box.leastAcross || 0);
  box.along = Math.max(along + (box.outs.size ? 0 : pad), box.leastAlong || 0);
  box.floor = content + 12;
  for (const port of box.outs.values()) port.a = box.along;
  for (const port of [...box.ins.values(), ...box.outs.values()]) port.at = port.c;
  for (const each of segments) each.points = pointsOf(each, starts, widths);
}

/* Steep arrows need a larger gap. */
function gapAfter(layer, following, least) {
  const gap = [...layer, ...following].some(({ item }) => item && item.label) ? LABEL_GAP : GAP;
  let steepest = 0;
  for (const vertex of layer)
    for (const next of vertex.after) steepest = Math.max(steepest, Math.abs(next.vertex.c + next.other - vertex.c - next.own));
  return Math.max(gap + Math.min(steepest * 0.18, 60), least);
}

function pointsOf(each, starts, widths) {
  const [first, last] = [each.chain[0], each.chain[each.chain.length - 1]];
  const start = first.c + each.leaves, end = last.c + each.reaches;
  const out = each.start.a + each.start.along, into = each.end.a;
  if (each.turned) return [[out, start], [into, end]];
  const points = [[out, start], [Math.max(starts[first.layer] + widths[first.layer], out), start]];
  for (const vertex of each.chain.slice(1, -1))
    points.push([starts[vertex.layer], vertex.c + 1], [starts[vertex.layer] + widths[vertex.layer], vertex.c + 1]);
  points.push([Math.min(starts[last.layer], into), end], [into, end]);
  return points;
}

function place(item, a, c) {
  item.a = (item.a || 0) + a;
  item.c = (item.c || 0) + c;
  for (const child of item.children || []) place(child, item.a, item.c);
}

/* The way back, below the content of the box. */
function roundabout({ from, to, within }) {
  const floor = within.c + within.floor;
  const start = [from.a + from.along, from.c + from.across / 2], end = [to.a, to.c + to.across / 2];
  return [start, [start[0] + 12, floor], [end[0] - 12, floor], end];
}
