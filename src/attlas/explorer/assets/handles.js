// Handles: the point of the visitor's settings on a plot, to be dragged, or moved with the arrow keys.
window.attlas = window.attlas || {};
(() => {
  const FAST = 5; // steps of an arrow key with Shift

  // What a handle moves: the plot, its axes, and the slider of each.
  function held(handle) {
    const figure = handle.closest("figure");
    const graph = figure.querySelector(".js-plotly-plot");
    const axes = graph?._fullLayout?.xaxis && [graph._fullLayout.xaxis, graph._fullLayout.yaxis];
    const keys = figure.dataset.drag.split(" ").map((key) => (key === "-" ? null : key));
    return { figure, graph, axes, keys };
  }
  const at = (key) => attlas.positions()[key.split(":")[1]];

  // Put every handle where the settings are.
  attlas.handles = () => {
    document.querySelectorAll(".handle").forEach((handle) => {
      const { figure, graph, axes, keys } = held(handle);
      const idle = (key) => attlas.place(key)?.disabled || at(key) === undefined;
      handle.hidden = !axes || !graph.data?.length || keys.some((key) => key && idle(key));
      if (handle.hidden) return;
      watch(graph);
      const box = graph.getBoundingClientRect();
      const frame = figure.getBoundingClientRect();
      const corner = [box.left - frame.left - figure.clientLeft, box.top - frame.top - figure.clientTop];
      const texts = [];
      axes.forEach((axis, i) => {
        let pixel = i ? axis._length : axis._length / 2; // without a slider: on the axis below
        if (keys[i]) {
          const value = attlas.value(attlas.form(keys[i]), at(keys[i]));
          pixel = axis.d2p(value);
          texts.push(attlas.place(keys[i]).querySelector("label span").textContent + ": " + attlas.typeset(value));
          if (!i) handle.setAttribute("aria-valuenow", String(Number(value.toPrecision(6))));
        }
        handle.style[i ? "top" : "left"] = corner[i] + axis._offset + pixel + "px";
      });
      handle.setAttribute("aria-valuetext", texts.join("; "));
    });
  };

  // The same once the plots are there, which Plotly draws a few frames after they were sent.
  attlas.handlesSoon = (frames = 120) => {
    attlas.handles();
    const waiting = [...document.querySelectorAll(".handle")].some((handle) => !held(handle).graph?.attlas);
    if (waiting && frames) requestAnimationFrame(() => attlas.handlesSoon(frames - 1));
  };

  // Move the line at the settings of every plot that has one; the rest of it waits for the server.
  attlas.rules = (section) => {
    section.querySelectorAll(".handle").forEach((handle) => {
      const { graph, axes, keys } = held(handle);
      if (!axes || !keys[0] || keys[1] || !graph.layout.shapes?.length) return;
      const x = attlas.value(attlas.form(keys[0]), at(keys[0]));
      if (graph.layout.shapes[0].x0 !== x) window.Plotly.relayout(graph, { "shapes[0].x0": x, "shapes[0].x1": x });
    });
  };

  // A plot that was drawn anew, in another size or range, moves its handle; a click on it moves the settings there.
  function watch(graph) {
    if (graph.attlas) return;
    graph.attlas = true;
    graph.on("plotly_afterplot", () => requestAnimationFrame(attlas.handles));
    const handle = graph.closest("figure").querySelector(".handle");
    graph.on("plotly_click", ({ event }) => handle && !event.defaultPrevented && move(handle, event.clientX, event.clientY));
  }

  // Set the sliders to a place on the screen.
  function move(handle, x, y, corner = null) {
    const { graph, axes, keys } = held(handle);
    const box = corner ? { left: corner.left - window.scrollX, top: corner.top - window.scrollY } : graph.getBoundingClientRect();
    axes.forEach((axis, i) => {
      if (!keys[i]) return;
      const pixel = (i ? y - box.top : x - box.left) - axis._offset;
      const position = attlas.position(attlas.form(keys[i]), axis.p2d(pixel));
      if (position !== at(keys[i])) attlas.set(keys[i], position);
    });
  }

  let dragged = null; // the handle under the pointer, and where that is: moved once per frame
  document.addEventListener("pointerdown", (event) => {
    if (!event.target.classList?.contains("handle") || event.button) return;
    event.target.setPointerCapture(event.pointerId);
    event.target.focus();
    const box = held(event.target).graph.getBoundingClientRect();
    // A sentence that grows moves the plot below it: the point goes on from where it was taken up.
    const corner = { left: box.left + window.scrollX, top: box.top + window.scrollY };
    dragged = { handle: event.target, due: 0, corner };
    event.preventDefault();
  });
  document.addEventListener("pointermove", (event) => {
    if (!dragged) return;
    Object.assign(dragged, { x: event.clientX, y: event.clientY });
    dragged.due ||= requestAnimationFrame(() => {
      if (!dragged) return;
      dragged.due = 0;
      move(dragged.handle, dragged.x, dragged.y, dragged.corner);
    });
  });
  for (const end of ["pointerup", "pointercancel"])
    document.addEventListener(end, (event) => {
      if (dragged && end === "pointerup") move(dragged.handle, event.clientX, event.clientY, dragged.corner);
      dragged = null;
    });

  const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowDown: [1, -1], ArrowUp: [1, 1] };
  document.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (!arrow || !event.target.classList?.contains("handle")) return;
    const key = held(event.target).keys[arrow[0]];
    if (!key) return;
    const form = attlas.form(key);
    const next = at(key) + arrow[1] * form.step * (event.shiftKey ? FAST : 1);
    attlas.set(key, Number(Math.min(Math.max(next, form.low), form.high).toFixed(9)));
    event.preventDefault();
  });
  window.addEventListener("resize", () => attlas.handles());
})();
