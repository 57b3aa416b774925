// Numbers printed in papers, apart from the ranking.

function publishedSection(track) {
  const rows = track.published;
  if (!rows.length) return null;
  const groups = [
    ["published", rows.filter((row) => !row.cells.every(isInDomain))],
    ["published, in-domain", rows.filter((row) => row.cells.every(isInDomain))],
  ].filter(([, members]) => members.length);
  const spread = rows.some((row) => row.cells.some((cell) => cell.spread !== undefined));
  return el("section", { id: "published" },
    el("h2", {}, "Published"),
    el("p", { class: "note" }, board.published_note, spread ? ` ${board.spread_note}` : ""),
    groups.map(([label, members]) =>
      el("div", { class: "box", tabindex: 0, role: "region", "aria-label": label }, publishedTable(members))),
    el("details", {}, el("summary", {}, "sources"),
      rows.map((row) => el("p", { class: "small lead" },
        el("b", {}, row.name), ` ${row.method}. ${row.source}. ${row.backbone}; ${row.protocol}. `, link(row.link)))));
}

function isInDomain(cell) {
  return cell.task.endsWith("in-domain");
}

// Columns of transfer first: the accuracy of pretraining itself is the last one.
function publishedTable(rows) {
  const cells = rows.flatMap((row) => row.cells).sort((a, b) => isInDomain(a) - isInDomain(b));
  const tasks = [...new Set(cells.map((cell) => cell.task))];
  return el("table", { class: "plain" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "row"),
      tasks.map((task) => el("th", { scope: "col" }, task)))),
    el("tbody", {}, rows.map((row) => el("tr", {},
      el("th", { scope: "row", title: row.method }, breakable(row.name), shortLinks(row.link)),
      tasks.map((task) => publishedCell(row.cells.find((cell) => cell.task === task)))))));
}

function publishedCell(cell) {
  if (!cell) return el("td", { class: "absent" }, "–");
  const over = cell.spread === undefined ? "" : ` (${plusMinus(cell.spread).trim()})`;
  const title = [cell.table, cell.note, over && board.spread_note].filter(Boolean).join(": ");
  return el("td", { title }, `${percent(cell.mean)}${plusMinus(cell.ci95)}${over}`);
}
