// Files made from the data in the page; nothing is fetched.

const TYPES = { csv: "text/csv", json: "application/json", tex: "text/x-tex" };

function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: `${TYPES[kind]};charset=utf-8` }));
  el("a", { href: address, download: `${name}.${kind}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function downloads(track) {
  if (!track.downloads) return null;
  const name = `${board.board}-${track.title}`.replace(/[^\w.-]+/g, "-");
  return Object.keys(TYPES).map((kind) =>
    el("button", {
      type: "button", "data-download": kind,
      onclick: async () => save(name, kind, (await unpackJson(track, "downloads"))[kind]),
    }, kind === "tex" ? "LaTeX" : kind.toUpperCase()));
}
