// Theory over grids, from which the browser draws between two answers of the server.
window.attlas = window.attlas || {};
(() => {
  const MOST = 40; // grids that are held
  const REST = 1500; // ms: a grid takes the server seconds, where it has no other visitor's
  const held = new Map(); // by address: the grid, or null while it is fetched and where there is none

  // The grid of this name at these positions, null until it is here.
  attlas.grid = (section, name, positions) => {
    const [door, ...names] = JSON.parse(section.dataset.grids)[name];
    const query = new URLSearchParams(names.map((one) => [one, positions[one]]));
    const address = `/grid/${door}/${name}.json?${query}`;
    if (!held.has(address)) {
      if (held.size >= MOST) held.delete(held.keys().next().value);
      held.set(address, null);
      fetch(address)
        .then((answer) => (answer.ok ? answer.json() : answer.status < 500 ? null : Promise.reject(new Error(answer.status))))
        .then((grid) => held.set(address, grid))
        .catch(() => setTimeout(() => held.delete(address), REST)); // the server draws instead, and it is asked again
    }
    return held.get(address);
  };
  // Fetch what the settings of a section may need when one of its controls is dragged, once they have come to rest.
  const known = new WeakSet(); // sections that have asked before
  let soon = 0;
  attlas.grids = (section) => {
    clearTimeout(soon);
    soon = setTimeout(() => section.isConnected && ask(section), known.has(section) ? REST : 0);
    known.add(section);
  };
  function ask(section) {
    const wanted = attlas.wanted?.[attlas.door()] ?? Object.keys;
    const names = wanted(JSON.parse(section.dataset.grids), attlas.settled(section));
    names.forEach((name) => attlas.grid(section, name, attlas.settled(section)));
  }

  // Where a value lies on a uniform grid, and the weights of the cubic through the four nodes around it.
  attlas.cubic = (value, low, high, count) => {
    const t = ((value - low) / (high - low)) * (count - 1);
    const first = Math.min(Math.max(Math.floor(t) - 1, 0), count - 4);
    const s = t - first;
    const weights = [
      (-(s - 1) * (s - 2) * (s - 3)) / 6, (s * (s - 2) * (s - 3)) / 2,
      (-s * (s - 1) * (s - 3)) / 2, (s * (s - 1) * (s - 2)) / 6,
    ];
    return { first, weights };
  };
  attlas.at = (row, { first, weights }) => weights.reduce((sum, weight, i) => sum + weight * row[first + i], 0);
  // A row between the rows of a table.
  attlas.between = (table, { first, weights }) =>
    table[0].map((_, j) => weights.reduce((sum, weight, i) => sum + weight * table[first + i][j], 0));
})();
