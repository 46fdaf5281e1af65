// Players: buttons that move a slider from step to step. See `attlas.explorer.play`.
(() => {
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const timers = new Map(); // of the players that play, by the id of their slider
  const slider = (player) => document.getElementById(player.dataset.moves);
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;

  function move(player, to) {
    const input = slider(player);
    set.call(input, Math.min(Number(input.max), Math.max(Number(input.min), to)));
    input.dispatchEvent(new Event("input", { bubbles: true })); // as if it had been dragged
  }

  function plots(player) {
    return [...player.closest("section").querySelectorAll(".js-plotly-plot")].filter((plot) => plot.data);
  }

  function trails(player) {
    if (!player.querySelector("input")) return []; // it moves a slider that the server follows
    return plots(player).flatMap((plot) =>
      plot.data.map((trace, i) => ({ plot, trace, i })).filter(({ trace }) => trace.meta?.fade)
    );
  }

  const takeOf = (found) => String(found[0]?.trace.meta.take ?? "");

  // Show the points up to a step, the last ones clearest.
  function reveal({ plot, trace, i }, step) {
    if (trace.revealed === step) return;
    trace.revealed = step;
    const { fade, least } = trace.meta;
    const opacity = trace.x.map((_, place) => (place > step ? 0 : Math.max(least, fade ** (step - place))));
    window.Plotly.restyle(plot, { "marker.opacity": [opacity] }, [i]);
  }

  // Bring a player into line with its slider and the plots.
  function refresh(player) {
    const input = slider(player);
    if (!input) return stop(player);
    const found = trails(player);
    const before = Number(input.max);
    const ends = found.length ? found.map(({ trace }) => trace.x.length - 1) : plots(player).map((plot) => plot.layout.meta?.last);
    const last = Math.max(...ends.filter((end) => end > 0));
    if (Number.isFinite(last) && last !== before) {
      const here = Number(input.value);
      const atEnd = found.length && here === before && !timers.has(player.dataset.moves);
      input.max = last;
      if (atEnd || here > last) move(player, last); // who looks at the end sees the new end
    }
    const take = takeOf(found);
    if (take && "awaits" in player.dataset && take !== player.dataset.awaits) {
      delete player.dataset.awaits;
      if (!calm.matches) play(player, true);
    }
    const value = Number(input.value);
    found.forEach((trail) => reveal(trail, value));
    const says = player.querySelector(".value");
    if (says) write(says, `${value} of ${input.max}`);
    disable(player.querySelector(".back"), value <= Number(input.min));
    disable(player.querySelector(".forward"), value >= Number(input.max));
    disable(player.querySelector(".play"), false);
  }

  function write(place, text) {
    if (place.textContent !== text) place.textContent = text;
  }

  function disable(button, whether) {
    if (button.disabled === whether) return;
    if (whether && button === document.activeElement) button.parentElement.querySelector(".play").focus();
    button.disabled = whether;
  }

  function play(player, again) {
    stop(player);
    const input = slider(player);
    const name = input.id;
    const span = Number(input.max) - Number(input.min);
    if (again || Number(input.value) >= Number(input.max)) move(player, Number(input.min));
    const seconds = Number(player.dataset.seconds);
    const pause = 1000 * (calm.matches ? Math.max(1.5, seconds) : seconds);
    const by = calm.matches && seconds < 1 ? Math.ceil(span / 12) : 1; // few changes, not slow ones
    label(player, "Pause");
    timers.set(name, window.setInterval(() => {
      const here = slider(player);
      if (!player.isConnected || !here) return stop(player);
      const section = player.closest("section");
      if (document.hidden || section.ariaBusy || section.querySelector("[data-dash-is-loading]")) return; // not drawn yet
      if (Number(here.value) < Number(here.max)) return move(player, Number(here.value) + by);
      if (!trails(player).some(({ trace }) => trace.meta.more)) stop(player);
    }, pause));
  }

  function stop(player) {
    window.clearInterval(timers.get(player.dataset.moves));
    timers.delete(player.dataset.moves);
    label(player, "Play");
  }

  function label(player, text) {
    const button = player.querySelector(".play");
    button.classList.toggle("playing", text === "Pause");
    button.setAttribute("aria-label", text);
    button.title = text;
  }

  function act(player, what) {
    const here = Number(slider(player).value);
    if (what === "play") return timers.has(player.dataset.moves) ? stop(player) : play(player);
    stop(player);
    move(player, here + (what === "back" ? -1 : 1));
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button");
    const player = button?.closest(".player");
    if (player) act(player, button.dataset.act);
    else if (button?.id.endsWith("-run")) // what comes next was asked for, and plays by itself
      document.querySelectorAll(".player").forEach((other) => (other.dataset.awaits = takeOf(trails(other))));
  });
  document.addEventListener("keydown", (event) => {
    const what = { ArrowLeft: "back", ArrowRight: "forward" }[event.key];
    const player = event.target.closest?.(".player");
    if (!what || !player || event.target.matches("input")) return;
    event.preventDefault();
    act(player, what);
  });
  document.addEventListener("input", (event) => {
    for (const player of document.querySelectorAll(".player"))
      if (slider(player) === event.target) {
        if (event.isTrusted) stop(player); // a hand on the slider
        refresh(player);
      }
  });

  // Plots are drawn anew by many hands; look once after each.
  let due = false;
  const look = () => {
    due = false;
    document.querySelectorAll(".player").forEach(refresh);
  };
  const begin = () =>
    new MutationObserver(() => {
      if (!due && document.querySelector(".player")) due = Boolean(window.requestAnimationFrame(look));
    }).observe(document.body, { childList: true, subtree: true });
  if (document.body) begin();
  else document.addEventListener("DOMContentLoaded", begin);
})();
