// What pages do with a script and do not need: the gallery is searched and sorted, points of figures answer, texts are copied.
"use strict";

document.documentElement.classList.add("script");

function gallery(form) {
  const cards = [...document.querySelectorAll(".card")].map((card, place) => ({
    card, place, home: card.parentElement, door: card.closest(".door").dataset.door,
    papers: card.dataset.papers.split(" "), status: card.dataset.status,
    text: `${card.textContent} ${card.querySelector("h3 a").title}`.toLowerCase(), // formulas also as people type them
    margin: card.dataset.margin === "" ? NaN : Number(card.dataset.margin),
  }));
  const sorted = document.getElementById("sorted");
  const fields = [...form.elements].filter((field) => field.name);

  function state() {
    return Object.fromEntries(fields.filter((field) => (field.type === "checkbox" ? field.checked : field.value))
      .map((field) => [field.name, field.value]));
  }

  function show() {
    const now = state(), words = (now.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const one of cards) {
      const found = (!now.door || one.door === now.door) && (!now.paper || one.papers.includes(now.paper))
        && (!now.verdict || one.status === now.verdict) && words.every((word) => one.text.includes(word));
      one.card.hidden = !found;
      count += found;
    }
    const sign = now.sort === "most" ? -1 : 1;
    const order = [...cards].sort((a, b) => (now.sort
      ? isNaN(a.margin) - isNaN(b.margin) || sign * (a.margin - b.margin) || a.place - b.place : a.place - b.place));
    for (const one of order) (now.sort ? sorted.lastElementChild : one.home).append(one.card);
    sorted.hidden = !now.sort;
    for (const door of document.querySelectorAll(".door")) door.hidden = Boolean(now.sort) || !door.querySelector(".card:not([hidden])");
    document.body.classList.toggle("statements", Boolean(now.statements));
    form.querySelector("output").textContent = count === cards.length ? "" : `${count} of ${cards.length} claims`;
  }

  function read() {
    const kept = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    for (const field of fields) {
      if (field.type === "checkbox") field.checked = kept.get(field.name) === field.value;
      else field.value = kept.get(field.name) || "";
      if (field.value === "" && field.tagName === "SELECT") field.selectedIndex = 0;
    }
    show();
  }

  function keep() {
    show();
    const now = new URLSearchParams(state()).toString();
    history.replaceState(null, "", now ? `#${now}` : location.pathname + location.search);
  }

  form.hidden = false;
  form.addEventListener("input", keep);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(keep));
  addEventListener("hashchange", () => {
    read();
    document.getElementById(location.hash.slice(1))?.scrollIntoView(); // it may have been hidden until now
  });
  read();
}

function points(figure) {
  const svg = figure.querySelector("svg"), frame = figure.querySelector(".wide"), told = figure.querySelector("output.point");
  const marks = [...figure.querySelectorAll(".points circle")].map((mark) => {
    const title = mark.querySelector("title");
    const words = title.textContent;
    title.remove(); // said below the figure instead
    return { mark, words, x: Number(mark.getAttribute("cx")), y: Number(mark.getAttribute("cy")) };
  });
  if (!marks.length) return;
  const along = [...marks].sort((a, b) => a.x - b.x || a.y - b.y);
  let current = null;
  const hint = "Point at a mark, or use the arrow keys.";
  told.hidden = false;
  told.textContent = hint;

  function choose(one) {
    if (one === current) return;
    if (current) current.mark.classList.remove("chosen");
    current = one;
    if (one) one.mark.classList.add("chosen");
    told.textContent = one ? one.words : hint;
  }

  function nearest(event) {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const reach = 18 / svg.getScreenCTM().a;
    const off = (one) => Math.hypot(one.x - place.x, one.y - place.y);
    const best = marks.reduce((a, b) => (off(b) < off(a) ? b : a));
    choose(off(best) < reach ? best : null);
  }

  svg.addEventListener("pointermove", nearest);
  svg.addEventListener("pointerdown", nearest);
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") choose(null);
    if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const place = current ? along.indexOf(current) + step : step > 0 ? 0 : along.length - 1;
    choose(along[(place + along.length) % along.length]);
    current.mark.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
}

function copied(box) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const text = box.querySelector("pre");
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch { // not allowed here: the text is selected, for the reader's own keys
      getSelection().selectAllChildren(text);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  box.append(button);
}

const form = document.querySelector("form.controls");
if (form) gallery(form);
document.querySelectorAll("figure").forEach(points);
document.querySelectorAll(".copied").forEach(copied);
