// A page of claims that is still being drawn: ask until it is there. A page that reloads itself would lose a reader's place.
if (document.body.hasAttribute("data-waiting")) {
  const ask = async () => {
    const answer = await fetch(location.href, { cache: "no-store" }).catch(() => null);
    if (answer && answer.status !== 202) location.reload();
    else setTimeout(ask, 2000);
  };
  setTimeout(ask, 2000);
}
