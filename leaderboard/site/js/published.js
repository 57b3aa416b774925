// Numbers printed in papers, apart from the ranking.

function publishedSection(track) {
  const rows = track.published;
  if (!rows.length) return null;
  const inDomain = (task) => task.endsWith("in-domain");
  const tasks = [...new Set(rows.flatMap((row) => row.cells.map(([task]) => task)))]
    .sort((a, b) => inDomain(a) - inDomain(b));
  const transfers = (row) => row.cells.some(([task]) => !inDomain(task));
  const held = new Map(rows.map((row) => [row, new Map(row.cells.map((cell) => [cell[0], cell]))]));
  const spread = rows.some((row) => row.cells.some((each) => each[5] !== null));
  const cell = (row, task) => {
    const found = held.get(row).get(task);
    if (!found) return el("td", { class: "absent" }, "–");
    const [, mean, half, table, note, spread] = found;
    const over = spread === null ? "" : ` (${plusMinus(spread).trim()})`;
    const title = [table, note, over && board.spread_note].filter(Boolean).join(": ");
    return el("td", { title }, `${percent(mean)}${plusMinus(half)}${over}`);
  };
  return el("section", { id: "published" },
    el("h2", {}, "Published"),
    el("p", { class: "note" }, board.published_note, spread ? ` ${board.spread_note}` : ""),
    el("div", { class: "box", tabindex: 0, role: "region", "aria-label": "published results" },
      el("table", { class: "plain" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "row"),
          tasks.map((task) => el("th", { scope: "col" }, task)))),
        el("tbody", {}, [...rows].sort((a, b) => transfers(b) - transfers(a)).map((row) => el("tr", {},
          el("th", { scope: "row", title: row.method }, row.name, shortLinks(row.link)),
          tasks.map((task) => cell(row, task))))))),
    el("details", {}, el("summary", {}, "sources"),
      rows.map((row) => el("p", { class: "small lead" },
        el("b", {}, row.name), ` ${row.method}. ${row.source}. ${row.backbone}; ${row.protocol}. `, link(row.link)))));
}
