// The page of Bayes limits while alpha or rho is dragged: error, threshold, trained curve and spectrum from grids.
window.attlas = window.attlas || {};
attlas.live = attlas.live || {};
attlas.wanted = attlas.wanted || {};
(() => {
  const trains = (given) => given.trained === "on" && given.channel !== "hardmax";
  attlas.wanted.aim = (grids, given) => Object.keys(grids).filter((name) => name === "bayes" || trains(given));

  // The learning curve at a width: at the places of `theory.bayes_grid`, and at any alpha.
  attlas.bayes = (grid, rho) => {
    const width = attlas.cubic(Math.log(rho), ...grid.logs, grid.V.length);
    const V = attlas.between(grid.V, width);
    const unit = attlas.at(grid.unit, width);
    const k = grid.end / unit - 1;
    const alpha = (t) => (grid.exact ? unit * t : (grid.end * t) / (k - (k - 1) * t));
    const place = (alpha) => (grid.exact ? alpha / unit : (k * alpha) / (grid.end + (k - 1) * alpha));
    const x = V.map((_, i) => alpha(i / (V.length - 1)));
    const at = (alpha) => (place(alpha) < 1 ? attlas.at(V, attlas.cubic(place(alpha), 0, 1, V.length)) : V.at(-1));
    return { x: [...x, grid.end], y: [...V, V.at(-1)], threshold: grid.exact ? unit : null, at };
  };

  // What training reaches at a width: its error over alpha, and noise, shift and rank of its spectrum at one alpha.
  attlas.trained = (grid, rho, alpha) => {
    const width = attlas.cubic(Math.log(rho), ...grid.logs, grid.mse.length);
    const mse = attlas.between(grid.mse, width);
    const [low, high] = grid.alpha;
    const x = mse.map((_, i) => low + ((high - low) * i) / (mse.length - 1));
    const here = attlas.cubic(alpha, low, high, mse.length);
    const [delta, theta] = [grid.delta, grid.theta].map(
      (table) => Math.exp(attlas.at(attlas.between(table, width), here)) / alpha, // the logarithm of alpha times it is tabled
    );
    const rank = attlas.at(attlas.between(grid.rank, width), here);
    return { x, y: mse, delta, theta, rank };
  };

  // Eigenvalues and their density at this noise and shift, along w = log(f/s) as in `attlas.aim.spectrum`.
  attlas.spectrum = ({ delta, theta, rank }, rho) => {
    const s = Math.sqrt(rho);
    const point = (w) => {
      const ratio = Math.exp(w);
      const p = 1 / (delta + ratio);
      const bend = p - rho * Math.expm1(-w);
      const under = p - (bend / (2 * s)) ** 2;
      return { x: s * ratio + (delta / s) * bend, under, density: Math.sqrt(Math.max(under, 0)) / Math.PI };
    };
    const edge = (inside, outside) => {
      for (let i = 0; i < 40; i++) {
        const middle = (inside + outside) / 2;
        if (point(middle).under > 0) inside = middle;
        else outside = middle;
      }
      return inside;
    };
    const [LOW, HIGH, STEP, NODES] = [-14, 8, 0.02, 48];
    const found = [];
    let start = null;
    for (let w = LOW; w <= HIGH; w += STEP) {
      const inside = point(w).under > 0;
      if (inside && start === null) start = edge(w, w - STEP);
      if (!inside && start !== null) {
        const end = edge(w - STEP, w);
        for (let i = 0; i <= NODES; i++) {
          const { x, density } = point(start + ((end - start) * (1 - Math.cos((Math.PI * i) / NODES))) / 2);
          found.push([x - theta, i % NODES ? density : 0]);
        }
        start = null;
      }
    }
    const first = found.findIndex(([x]) => x > 0);
    const positive = first < 0 ? [] : found.slice(first);
    if (first > 0) { // the bulk is cut at zero, between two nodes
      const [[left, low], [right, high]] = found.slice(first - 1);
      positive.unshift([0, low + ((high - low) * left) / (left - right)]);
    }
    const [x, y] = [0, 1].map((part) => positive.map((point) => point[part]));
    return { x, y, name: `${(1 - rank).toFixed(3)} of the eigenvalues are zero` };
  };

  const trace = (graph, name) => graph.data.findIndex((one) => one.meta?.live === name);
  // Draw the curves `wanted` of a graph, hide what belongs to other settings, and change its layout.
  function update(graph, wanted, layout, away) {
    const indices = graph.data.map((_, i) => i);
    const own = Object.fromEntries(Object.entries(wanted).map(([name, curve]) => [trace(graph, name), curve]));
    const x = indices.map((i) => own[i]?.x ?? graph.data[i].x);
    const y = indices.map((i) => own[i]?.y ?? graph.data[i].y);
    const name = indices.map((i) => own[i]?.name ?? graph.data[i].name);
    const visible = indices.map((i) => Boolean(own[i]) || !away);
    window.Plotly.update(graph, { x, y, name, visible }, layout);
  }

  attlas.live.aim = (section, given, settled) => {
    const [curve, diagram, spectrum] = ["curve", "diagram", "spectrum"].map((name) => attlas.graph("aim-" + name));
    const grid = attlas.grid(section, "bayes", given);
    const same = Object.keys(given).every((name) => given[name] === settled[name] || name === "alpha" || name === "rho");
    if (!grid || !same || !window.Plotly || !curve?.data?.length || !diagram?.data?.length) return false;
    const alpha = attlas.value(attlas.form("aim:alpha"), given.alpha);
    const { x, y, threshold, at } = attlas.bayes(grid, given.rho);
    const wanted = { bayes: { x, y }, point: { x: [alpha], y: [at(alpha)] } };
    if (threshold) wanted.threshold = { x: [threshold, threshold], y: [0, 1] };
    const trained = trains(given) && attlas.grid(section, "trained", given);
    if (trained) {
      const found = attlas.trained(trained, given.rho, alpha);
      wanted.trained = { x: [0, ...found.x], y: [1 + given.rho, ...found.y] };
      if (spectrum?.data?.length)
        update(spectrum, { spectrum: attlas.spectrum(found, given.rho) }, {}, true);
    }
    const top = Math.min(1.1 * Math.max(...Object.values(wanted).flatMap((one) => one.y)), 3);
    const about = curve.layout.xaxis.title.text.replace(/ρ = [^,)]+/, `ρ = ${Number(given.rho.toPrecision(6))}`);
    const layout = { "shapes[0].x0": alpha, "shapes[0].x1": alpha, "yaxis.range": [0, top], "xaxis.title.text": about };
    update(curve, wanted, layout, given.rho !== settled.rho);
    update(diagram, { point: { x: [alpha], y: [given.rho] } }, {}, false);
    return !trains(given) || Boolean(trained);
  };
})();
