// The stage: the page over the whole screen, with larger letters, for talks.
window.attlas = window.attlas || {};
window.dash_clientside = window.dash_clientside || {};
window.dash_clientside.explorer = window.dash_clientside.explorer || {};
(() => {
  function enter(on) {
    document.documentElement.classList.toggle("stage", on);
    document.getElementById("stage")?.setAttribute("aria-pressed", String(on));
    attlas.look();
  }
  document.addEventListener("fullscreenchange", () => {
    if (attlas.onStage() !== Boolean(document.fullscreenElement)) enter(Boolean(document.fullscreenElement));
  });
  // Where the browser refuses its whole screen the stage fills the window, and Escape leaves it all the same.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && attlas.onStage() && !document.fullscreenElement) enter(false);
  });
  dash_clientside.explorer.stage = () => {
    const on = !attlas.onStage();
    if (on) document.documentElement.requestFullscreen?.().catch(() => {});
    else if (document.fullscreenElement) document.exitFullscreen();
    enter(on);
    return String(on);
  };
})();
