// The board itself: tiers as groups of rows, cells in colour with their intervals.

function boardTable(track, state, on) {
  const columns = shownColumns(track, state);
  const ranges = new Map([-1, ...columns.map((c) => c.index)].map((i) => [i, rangeOf(track, i)]));
  const rows = sorted(track, filtered(track, state), state.sort);
  const width = columns.length + 7;
  const table = el("table", { class: "board" },
    el("caption", { class: "unseen" }, `${track.title}: accuracy in percent with 95 % intervals`),
    tableHead(track, columns, state, on),
    bodies(track, rows, state).map(({ title, members }) => el("tbody", {},
      title && tierHead(title, width),
      members.map((row) => tableRow(track, row, columns, ranges, state, on)))));
  return { table, count: rows.length };
}

function tableHead(track, columns, state, on) {
  const groups = grouped(columns);
  const head = (key, label, more = {}) => {
    const active = state.sort.key === key;
    const direction = active ? (state.sort.down ? "descending" : "ascending") : null;
    const { title, ...rest } = more;
    return el("th", { scope: "col", "aria-sort": direction, ...rest },
      el("button", { type: "button", "data-sort": key, title, onclick: () => on.sort(key) }, label));
  };
  const fixed = (name, child) => el("th", { class: name, scope: "col" }, child);
  return el("thead", {},
    el("tr", {},
      el("td", { class: "pick" }), el("td", { class: "tier" }), el("td", { class: "entry" }), el("td"), el("td"),
      groups.map(({ dataset, columns: own }) =>
        el("th", { class: "group", colspan: own.length, scope: "colgroup" }, el("span", {}, dataset))),
      el("td"), el("td")),
    el("tr", {},
      fixed("pick", el("span", { class: "unseen" }, "compare")),
      head("tier", "tier", { class: "tier" }),
      head("name", "entry", { class: "entry" }),
      head("overall", "overall"),
      el("th", { scope: "col", title: "95 % interval of the rank, bootstrap over episodes" }, "rank"),
      columns.map((column) => head(column.index, [columnTitle(column), kindNote(track, column)], { title: column.name })),
      head("source", "source", { title: "in-domain accuracy" }),
      el("th", { scope: "col" }, "flags")));
}

function kindNote(track, column) {
  const several = column.shots !== undefined && kindsOf(track).filter((k) => !/probe|knn/.test(k)).length > 1;
  return several ? el("span", { class: "small" }, ` ${column.kind}`) : null;
}

function tierHead(title, width) {
  const [name, note] = title;
  return el("tr", { class: "tier-head" },
    el("th", { colspan: width, scope: "rowgroup" },
      el("span", {}, name, el("span", { class: "muted" }, ` · ${note}`))));
}

function tableRow(track, row, columns, ranges, state, on) {
  const chosen = state.chosen.includes(row.name);
  return el("tr", { class: chosen ? "chosen" : null },
    el("td", { class: "pick" }, el("label", {},
      el("input", {
        type: "checkbox", checked: chosen, "aria-label": `compare ${row.name}`,
        onchange: (event) => on.choose(row.name, event.target.checked),
      }))),
    el("td", { class: "tier" }, badge(row)),
    el("th", { class: "entry", scope: "row" },
      el("a", { href: on.address(row.name), class: "name", title: row.name }, row.name)),
    measured(row, -1, ranges.get(-1), track),
    el("td", { class: "muted" }, row.ranks ? [...new Set(row.ranks)].join("–") : "–"),
    columns.map((column) => measured(row, column.index, ranges.get(column.index), track)),
    el("td", { class: row.source === undefined ? "absent" : null }, percent(row.source),
      row.source === undefined ? null : selfMark(row, -1)),
    el("td", { class: "flags muted" },
      badgeOf(row), (row.flags ?? []).map((flag) => [el("span", { class: "tag" }, flag), " "])));
}

function badgeOf(row) {
  const found = board.entries[row.name].badge;
  return found && [verified(found), " "];
}

// Beside a number that no signed badge covers; column -1 is the mean over all.
function selfMark(row, column) {
  const columns = row.self_reported ?? [];
  return (column < 0 ? columns.length : columns.includes(column))
    ? el("span", { class: "self", title: "self-reported: no signed badge" }, "ˢ") : null;
}

function badge(row) {
  if (row.tier === undefined) return el("span", { class: "muted", title: row.reason }, "–");
  return el("span", { class: row.tier === 1 ? "badge first" : "badge", title: `tier ${row.tier}` }, String(row.tier));
}

function measured(row, column, range, track) {
  const score = scoreOf(row, column);
  if (!score) return el("td", { class: "absent" }, "–");
  const colour = column < 0 ? "overall" : `q${step(score.mean, range)}`;
  const best = column >= 0 && score.mean === range.best ? " best" : "";
  const span = range.high - range.low || 1;
  const half = score.half ?? 0;
  const of = column < 0 ? "overall" : track.columns[column].name;
  return el("td", {
    class: `cell ${colour}${best}`,
    title: `${of}: ${percent(score.mean)}${plusMinus(score.half)}${score.n ? `, n = ${score.n}` : ""}`,
    "--mean": (score.mean - range.low) / span,
    "--low": (score.mean - half - range.low) / span,
    "--wide": (2 * half) / span,
  }, percent(score.mean), el("span", { class: "unseen" }, plusMinus(score.half)), selfMark(row, column));
}

function filtered(track, { query, ranked }) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return track.rows.filter((row) => {
    const facts = board.entries[row.name];
    const text = [row.name, facts.authors, facts.architecture, facts.recipe, facts.ref, ...(row.flags ?? [])]
      .join(" ").toLowerCase();
    return (!ranked || row.tier !== undefined) && words.every((word) => text.includes(word));
  });
}

function sorted(track, rows, { key, down }) {
  const place = new Map(track.rows.map((row, i) => [row, i]));
  const value = (row) => {
    if (key === "tier") return place.get(row);
    if (key === "name") return row.name.toLowerCase();
    if (key === "source" || key === "overall") return row[key];
    return row.cells[key]?.[0];
  };
  const known = rows.filter((row) => value(row) !== undefined);
  const order = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : place.get(a) - place.get(b));
  known.sort(down ? (a, b) => order(b, a) : order);
  return [...known, ...rows.filter((row) => value(row) === undefined)];
}

// In the order of tiers, one group a tier, those of ties under a head that says so; else one group.
function bodies(track, rows, { sort }) {
  if (sort.key !== "tier") return [{ title: null, members: rows }];
  const groups = new Map();
  for (const row of rows) groups.set(row.tier, [...(groups.get(row.tier) ?? []), row]);
  return [...groups].map(([tier, members]) => {
    const size = track.rows.filter((row) => row.tier === tier).length;
    if (tier === undefined) return { title: ["Unranked", "each with its reason on its page"], members };
    const title = size > 1 ? [`Tier ${tier}`, `${size} entries statistically tied (episode noise only)`] : null;
    return { title, members };
  });
}
