// Plots: dressed for the reader's scheme and for the stage on the page, as the server has drawn them in files.
window.attlas = window.attlas || {};
window.dash_clientside = window.dash_clientside || {};
window.dash_clientside.explorer = window.dash_clientside.explorer || {};
(() => {
  // The colours of figures on a dark page: as far from it as theirs are from white.
  attlas.DARK = {
    "#0072b2": "#4ca9e6", "#d55e00": "#ff8a3d", "#009e73": "#2cc79c", "#cc79a7": "#e39ac4", "#56b4e9": "#8ed0f8",
    "#e69f00": "#f3b944", "#000000": "#f0f0f0", "#555555": "#b4b9c1", "#777777": "#a4a9b1", "#888888": "#a4a9b1",
    "#888": "#a4a9b1", "#1a1a1a": "#e8e8e8", "#d9dce1": "#3a3f47",
  };
  const [LINE, LINES] = [17, 3]; // pixels of a line of the legend, and lines that every plot has room for
  const STAGE = 1.35; // letters on the stage over those on the page
  const drawn = {}; // figures as the server has sent them, by the id of their plot
  const seen = new WeakMap(); // by place: the figure there and its look; what did not change is not drawn again
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).join(",");
  const bands = Object.fromEntries(
    Object.entries(attlas.DARK).filter(([light]) => light.length === 7).map(([light, other]) => [rgb(light), rgb(other)]),
  );

  attlas.onStage = () => document.documentElement.classList.contains("stage");
  attlas.graph = (name) => document.querySelector("#" + CSS.escape(name) + " .js-plotly-plot");

  // A colour of a figure as the page shows it.
  attlas.colour = (light) => (dark.matches ? (attlas.DARK[light.toLowerCase()] ?? light) : light);

  function dress(figure) {
    let text = JSON.stringify(figure);
    if (dark.matches) {
      text = text.replace(/"(#[0-9a-f]{3,6})"/gi, (_, light) => JSON.stringify(attlas.colour(light)));
      text = text.replace(/rgba\((\d+,\d+,\d+),/g, (all, light) => (bands[light] ? `rgba(${bands[light]},` : all));
    }
    if (attlas.onStage()) text = text.replaceAll("font-size:12px", `font-size:${Math.round(12 * STAGE)}px`); // below titles of axes
    const own = JSON.parse(text);
    const named = own.data.filter((trace) => trace.name && trace.showlegend !== false).length;
    if (own.layout.height) own.layout.height += LINE * Math.max(0, named - LINES); // a long legend takes nothing from the plot
    if (attlas.onStage()) {
      const room = Math.round(window.innerHeight * 0.62);
      own.layout.height = Math.max(own.layout.height ?? 0, room);
      own.layout.font.size *= STAGE;
      if (own.layout.legend?.font) own.layout.legend.font.size *= STAGE;
      own.data.forEach((trace) => trace.line?.width && (trace.line.width *= STAGE));
    }
    return own;
  }

  // A look that changed, with the scheme or the stage, draws every plot again.
  let looks = 0;
  attlas.look = () => dash_clientside.set_props("look", { data: ++looks });
  dark.addEventListener("change", attlas.look);

  Object.assign(dash_clientside.explorer, {
    // Show what the server has drawn: the summary, and of every plot the figure and the class of its place.
    show: (answer, _look, id) => {
      const names = dash_clientside.callback_context.outputs_list.map((output) => output.id);
      if (!answer) return names.map(() => dash_clientside.no_update);
      const section = document.getElementById(names[0]).closest("section");
      const figures = answer.plots.flatMap(([figure, shown], i) => {
        if (!figure) return [dash_clientside.no_update, shown];
        const name = names[1 + 2 * i];
        const place = document.getElementById(name);
        const text = JSON.stringify([figure, looks]);
        const before = seen.get(place);
        drawn[name] = figure;
        seen.set(place, text);
        if (before === text) return [dash_clientside.no_update, shown];
        const own = dress(figure);
        place.style.minHeight = own.layout.height ? own.layout.height + "px" : ""; // Plotly forgets the height with the next change
        return [own, shown];
      });
      setTimeout(() => attlas.answered(section));
      return [answer.summary, ...figures];
    },
    // Save the figure as the server has drawn it: dark on white, whatever the page looks like.
    save: (_clicks, ids) => {
      const clicked = dash_clientside.callback_context.triggered[0];
      if (clicked && clicked.value) {
        const name = JSON.parse(clicked.prop_id.split(".").slice(0, -1).join(".")).save;
        const size = { format: "svg", width: 800, height: 560, filename: "attlas-" + name };
        if (drawn[name] && window.Plotly) window.Plotly.downloadImage(JSON.parse(JSON.stringify(drawn[name])), size);
      }
      return ids.map(() => dash_clientside.no_update);
    },
  });
})();
