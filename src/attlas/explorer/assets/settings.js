// The settings of a page: values beside controls, what is disabled, the address, and when the server is asked.
window.attlas = window.attlas || {};
window.dash_clientside = window.dash_clientside || {};
window.dash_clientside.explorer = window.dash_clientside.explorer || {};
attlas.live = attlas.live || {}; // by door: what the browser draws by itself while a control moves
(() => {
  const GAP = 250; // ms between two questions to the server, and ms of rest after which it is asked what the browser has drawn
  const LOST = 10000; // ms after which an answer is not waited for
  const SHIFTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  let current = ""; // path and settings in the address
  let written = 0; // when it comes to rest: browsers refuse hundreds of addresses a minute
  let positions = {}; // of every control on the page, by name
  const asked = new Map(); // by section: what the server was asked last, when, whether it has answered, and the next question

  // A number as one writes it: three digits at most, powers of ten where it is very small or large.
  attlas.typeset = (value, digits = 3) => {
    const rounded = Number(Number(value).toPrecision(digits));
    if (rounded === 0 || (Math.abs(rounded) >= 1e-3 && Math.abs(rounded) < 1e5)) return String(rounded).replace("-", "−");
    const [mantissa, power] = rounded.toExponential().split("e");
    const raised = [...String(Number(power))].map((sign) => SHIFTS[sign]).join("");
    return (mantissa === "1" ? "" : mantissa.replace("-", "−") + " × ") + "10" + raised;
  };

  attlas.place = (key) => document.querySelector(`fieldset[data-control="${CSS.escape(key)}"]`);
  attlas.form = (key) => JSON.parse(attlas.place(key)?.dataset.form ?? "null");
  const scale = (form) => form.scales[form.by.map((name) => String(positions[name])).join(",")] ?? 1;
  // The value at a position of a slider, and the position of a value, as in `controls.Slider`.
  attlas.value = (form, at) => (form.powers ? Math.pow(10, at) : form.options ? at : at * scale(form));
  attlas.position = (form, value) => {
    const at = form.powers ? Math.log10(Math.max(value, 1e-300)) : value / scale(form);
    const step = Math.round((Math.min(Math.max(at, form.low), form.high) - form.low) / form.step);
    return Number(Math.min(form.low + step * form.step, form.high).toFixed(9));
  };
  attlas.set = (key, at) => dash_clientside.set_props({ control: key }, { value: at });

  // Write the value of a control beside it, and disable it where it does nothing; return it in short.
  function tell(key, at) {
    const place = attlas.place(key);
    const form = attlas.form(key);
    if (!form) return "";
    const idle = Object.entries(form.only).some(([name, values]) => !values.includes(String(positions[name])));
    place.disabled = idle;
    place.title = idle ? form.why : "";
    place.querySelector(".why").textContent = idle ? form.why : "";
    if (form.options) return idle ? "" : form.options[at];
    const text = attlas.typeset(attlas.value(form, at), form.powers ? 2 : 3);
    place.querySelector(".value").textContent = text;
    place.querySelector("input").setAttribute("aria-valuetext", text); // a slider itself knows its position only
    const signs = [...place.querySelectorAll("label i")].map((sign) => sign.textContent);
    const sign = signs.find((one) => /[α-ω]/.test(one)) ?? signs[0];
    return idle ? "" : (sign ? sign + " = " : "") + text;
  }

  // Have a section drawn at these positions: by the browser if it can, and by the server when they rest.
  function follow(section, answered = false) {
    const id = section.dataset.settled;
    const names = JSON.parse(section.dataset.names);
    if (!section.isConnected || !names.every((name) => name in positions)) return; // of a page that was left, or is not told yet
    const given = Object.fromEntries(names.map((name) => [name, positions[name]]));
    const wanted = JSON.stringify(given);
    const last = asked.get(section);
    if (!last) return asked.set(section, { given, sent: wanted, when: 0, busy: 0, timer: 0 }); // the page was laid out with it
    if (answered && wanted === last.sent) return; // what the server has drawn is exact, and stays
    const drawn = attlas.live[attlas.door()]?.(section, given, last.given);
    if (!drawn) attlas.rules(section);
    clearTimeout(last.timer);
    section.toggleAttribute("data-ahead", wanted !== last.sent || last.busy > 0); // of what the summary says
    if (wanted === last.sent) return;
    const now = performance.now();
    const busy = last.busy && now - last.busy < LOST;
    const wait = drawn ? GAP : Math.max(0, busy ? last.busy + LOST - now : last.when + GAP - now);
    last.timer = setTimeout(() => {
      Object.assign(last, { given, sent: wanted, when: performance.now(), busy: performance.now() });
      section.setAttribute("aria-busy", "true");
      dash_clientside.set_props(id, { data: given });
    }, wait);
  }

  // The server has answered: what has been wanted since is asked next.
  attlas.answered = (section) => {
    section.removeAttribute("aria-busy");
    section.removeAttribute("data-ahead");
    section.dataset.drawn = "";
    const last = asked.get(section);
    if (last) last.busy = 0;
    attlas.grids(section);
    attlas.handlesSoon();
    if (last) follow(section, true);
  };
  // No answer will come: the next move asks at once, also for what was asked before.
  attlas.lost = () =>
    asked.forEach((last, section) => {
      Object.assign(last, { busy: 0, sent: "" });
      section.removeAttribute("aria-busy");
    });
  attlas.door = () => window.location.pathname.replaceAll("/", "") || document.querySelector("[data-door]")?.dataset.door;
  attlas.positions = () => positions;
  attlas.settled = (section) => asked.get(section)?.given ?? {};

  // Dash calls radio buttons a list box and their labels its options, which confuses those who listen to the page.
  const CLAIMS = ["role", "aria-selected"];
  new MutationObserver(() => {
    const wrong = document.querySelectorAll(".choices[role], .choices :is([role], [aria-selected])");
    wrong.forEach((one) => CLAIMS.forEach((name) => one.removeAttribute(name)));
  }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: CLAIMS });

  Object.assign(dash_clientside.explorer, {
    // Controls were laid out or moved: return the addresses of the data of this state.
    moved: (values, ids, links) => {
      const number = (key, value) => (attlas.form(key)?.options ? value : Number(value)); // a slider that was moved says its text
      positions = Object.fromEntries(ids.map((id, i) => [id.control.split(":")[1], number(id.control, values[i])]));
      const query = "?" + new URLSearchParams(positions);
      if (ids.length) {
        const path = window.location.pathname;
        const before = current;
        current = path + query;
        clearTimeout(written);
        written = setTimeout(() => path === window.location.pathname && window.history.replaceState(window.history.state, "", path + query), GAP);
        const door = ids[0].control.split(":")[0];
        sessionStorage.setItem("attlas:" + door, query);
        dash_clientside.set_props({ door: door }, { href: "/" + door + query });
        const moved = before.startsWith(path + "?") && before !== current;
        if (moved) document.querySelectorAll(".refused").forEach((note) => (note.hidden = true)); // of the address one came by
      }
      const title = document.querySelector("main h1");
      if (title) document.title = title.innerText + " · attlas";
      const told = new Map(ids.map((id) => [id.control, tell(id.control, positions[id.control.split(":")[1]])]));
      document.querySelectorAll("section[data-settled]").forEach((section) => {
        const own = [...section.querySelectorAll(".controls fieldset")].map((place) => told.get(place.dataset.control));
        section.querySelector(".current").textContent = own.filter(Boolean).join(" · ");
        follow(section);
      });
      attlas.handles();
      return links.map((link) => link.split("?")[0] + query);
    },
    // Links to pages carry the settings that they were left with.
    doors: (_links, ids) => {
      requestAnimationFrame(() => {
        document.querySelector("nav .current")?.setAttribute("aria-current", "page");
        if (matchMedia("(max-width: 55rem)").matches) document.querySelectorAll(".settings").forEach((one) => (one.open = false));
      });
      return ids.map((id) => "/" + id.door + (sessionStorage.getItem("attlas:" + id.door) ?? ""));
    },
  });
})();
