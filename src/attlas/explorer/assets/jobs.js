// Jobs: what their buttons do without the server.
window.dash_clientside = window.dash_clientside || {};
window.dash_clientside.explorer = window.dash_clientside.explorer || {};
Object.assign(dash_clientside.explorer, {
  missing: (found) => !found,
  // After a reload: let the clock tick once, if this tab has a computation under way.
  resume: (_shown, id) => {
    const key = JSON.parse(sessionStorage.getItem(id) ?? "null");
    return key ? 1 : dash_clientside.no_update;
  },
});
