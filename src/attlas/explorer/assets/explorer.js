// What the browser does by itself: the address bar, the values beside sliders, saving a figure.
window.dash_clientside = window.dash_clientside || {};
let current = ""; // path and settings in the address
// A slider holds its position; say its value to those who cannot see it beside the label.
const announce = (control, text) =>
  document.getElementById(JSON.stringify({ control: control }))?.setAttribute("aria-valuetext", text);
window.dash_clientside.explorer = {
  // Write the state into the address, and return the addresses of the data of the same state.
  address: function (values, ids, links) {
    const query = new URLSearchParams();
    ids.forEach((id, i) => query.set(id.control.split(":")[1], values[i]));
    if (ids.length) {
      const path = window.location.pathname;
      const before = current;
      current = path + "?" + query;
      window.history.replaceState(window.history.state, "", current);
      const moved = before.startsWith(path + "?") && before !== current;
      if (moved) document.querySelectorAll(".refused").forEach((note) => (note.hidden = true)); // of the address one came by
    }
    const title = document.querySelector("main h1");
    if (title) document.title = title.innerText + " · attlas";
    return links.map((link) => link.split("?")[0] + "?" + query);
  },
  number: function (value) {
    return String(Number(value));
  },
  power: function (value) {
    const text = String(Number(Math.pow(10, value).toPrecision(2)));
    announce(window.dash_clientside.callback_context.inputs_list[0].id.control, text);
    return text;
  },
  computed: function (text) {
    announce(window.dash_clientside.callback_context.inputs_list[0].id.control, text);
    return window.dash_clientside.no_update;
  },
  same: function (value) {
    return Boolean(value);
  },
  missing: function (found) {
    return !found;
  },
  save: function (clicks, ids) {
    const clicked = window.dash_clientside.callback_context.triggered[0];
    if (clicked && clicked.value) {
      const name = JSON.parse(clicked.prop_id.split(".").slice(0, -1).join(".")).save;
      const plot = document.querySelector("#" + CSS.escape(name) + " .js-plotly-plot");
      if (plot && window.Plotly) window.Plotly.downloadImage(plot, { format: "svg", width: 800, height: 560, filename: "attlas-" + name });
    }
    return ids.map(() => window.dash_clientside.no_update);
  },
};
