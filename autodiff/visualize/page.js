"use strict";
(() => {
  const { frames, seconds } = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const steps = [...get("steps").children];
  const last = frames.length - 1;
  const play = get("play");
  let at = 0;
  let timer = null;

  // The whole state follows from the number of the frame, so that going back is like going forward.
  function show(place) {
    at = Math.max(0, Math.min(last, place));
    const labels = {};
    const derivatives = {};
    for (const frame of frames.slice(0, at + 1)) {
      if (frame.edge) labels[frame.edge] = frame.label;
      if (frame.target) derivatives[frame.target] = frame.shown;
    }
    const now = frames[at];
    for (const edge of document.querySelectorAll(".edge")) {
      edge.classList.toggle("passed", edge.id in labels);
      edge.classList.toggle("active", edge.id === now.edge);
      const label = get(`${edge.id}-label`);
      label.textContent = labels[edge.id] ?? "";
      label.classList.toggle("active", edge.id === now.edge);
    }
    for (const node of document.querySelectorAll(".node")) {
      node.classList.toggle("active", node.id === now.node);
      node.classList.toggle("target", node.id === now.target);
      const derivative = get(`${node.id}-derivative`);
      if (!derivative) continue;
      derivative.classList.toggle("empty", !(node.id in derivatives));
      derivative.querySelector("text").textContent = derivatives[node.id] ? `∂ ${derivatives[node.id]}` : "";
    }
    steps.forEach((step, place) => { step.hidden = place !== at; });
    get("slider").value = at;
    get("slider").setAttribute("aria-valuetext", `frame ${at + 1} of ${frames.length}`);
    get("count").textContent = `${at + 1} of ${frames.length}`;
    get("first").disabled = get("back").disabled = at === 0;
    get("forward").disabled = get("last").disabled = at === last;
    get("said").textContent = `Frame ${at + 1} of ${frames.length}. ${now.said}`;
    follow(now.edge || now.target);
  }

  // On a narrow screen the graph lies in the other direction, if it is narrower then.
  const narrow = matchMedia("(max-width: 699px)");
  const asked = get("drawing");
  const turned = get("turned").content.firstElementChild;
  function turn() {
    const width = (drawing) => parseFloat(drawing.style.getPropertyValue("--width"));
    const drawing = narrow.matches && turned && width(asked) > innerWidth && width(turned) < width(asked) ? turned : asked;
    if (get("drawing") !== drawing) get("drawing").replaceWith(drawing);
    show(at);
  }

  // Keep what happens in sight where the drawing is larger than its frame.
  function follow(id) {
    const graph = get("graph");
    if (!id || (graph.scrollWidth <= graph.clientWidth && graph.scrollHeight <= graph.clientHeight)) return;
    const there = get(id).getBoundingClientRect();
    const frame = graph.getBoundingClientRect();
    graph.scrollLeft += there.left + there.width / 2 - frame.left - frame.width / 2;
    graph.scrollTop += there.top + there.height / 2 - frame.top - frame.height / 2;
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.classList.remove("playing");
    play.setAttribute("aria-label", "Play");
    get("said").setAttribute("aria-live", "polite");
  }

  function toggle() {
    if (timer !== null) { stop(); return; }
    if (at === last) show(0);
    play.classList.add("playing");
    play.setAttribute("aria-label", "Pause");
    get("said").setAttribute("aria-live", "off");
    timer = setInterval(() => {
      show(at + 1);
      if (at === last) stop();
    }, seconds * 1000);
  }

  function go(place) {
    stop();
    show(place);
  }

  get("first").addEventListener("click", () => go(0));
  get("back").addEventListener("click", () => go(at - 1));
  get("forward").addEventListener("click", () => go(at + 1));
  get("last").addEventListener("click", () => go(last));
  get("slider").addEventListener("input", (event) => go(Number(event.target.value)));
  play.addEventListener("click", toggle);

  const keys = { ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1), Home: () => go(0), End: () => go(last), " ": toggle };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !(event.key in keys)) return;
    if (event.key === " " && event.target.tagName === "BUTTON") return; // it presses the button
    event.preventDefault();
    keys[event.key]();
  });

  narrow.addEventListener("change", turn);
  turn();
})();
