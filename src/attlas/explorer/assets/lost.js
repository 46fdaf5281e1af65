// A server that does not answer is said, until it answers again: the page would go on showing what is no longer true.
(() => {
  const fetched = window.fetch;
  const note = document.createElement("p");
  note.className = "lost";
  note.setAttribute("role", "alert");
  const tell = (lost) => {
    const text = lost ? "The server does not answer. Start it again (attlas explore), then move a control." : "";
    if (note.textContent === text) return;
    if (!note.isConnected) document.body.append(note); // beside the page, which React keeps
    note.textContent = text;
    if (lost) window.attlas?.lost();
  };
  window.fetch = async (...asked) => {
    try {
      const answer = await fetched(...asked);
      tell(false);
      return answer;
    } catch (error) {
      if (error.name !== "AbortError") tell(true);
      throw error;
    }
  };
})();
