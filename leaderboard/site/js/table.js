// The board itself: tiers as groups of rows, cells in colour with their intervals.

function boardTable(track, state, on) {
  const columns = shownColumns(track, state);
  const ranges = new Map([-1, ...columns.map((c) => c.index)].map((i) => [i, rangeOf(track, i)]));
  const rows = sorted(track, filtered(track, state), state.sort);
  const width = columns.length + 7 + costHeads(track).length;
  const body = (row) => [
    tableRow(track, row, columns, ranges, state, on),
    ...(state.open.has(row.name) ? row.seeds : []).map((seed) => seedRow(track, seed, columns, ranges, on)),
  ];
  const table = el("table", { class: "board" },
    el("caption", { class: "unseen" }, `${track.title}: accuracy in percent with 95 % intervals`),
    tableHead(track, columns, state, on),
    bodies(track, rows, state).map(({ title, members }) => el("tbody", {},
      title && tierHead(title, width),
      members.map(body))));
  return { table, count: rows.length };
}

// The cost of a network: what is exact can be sorted, what one machine measured cannot.
function costHeads(track) {
  const exact = [["parameters", "parameters", "of the network without a head"]];
  return track.entries.some((row) => row.cost)
    ? [...exact, ["macs", "GMACs", "multiply-adds of one image"], [null, "measured", "on the machine below it: not comparable with another one"]]
    : exact;
}

function costsOf(track, row) {
  const { macs, images_per_second: speed, peak_memory_bytes: memory, machine } = row.cost ?? {};
  const cells = [
    shortNumber(row.parameters),
    macs === undefined ? "–" : String(Number((macs / 1e9).toPrecision(3))),
    speed === undefined ? "–" : [`${speed.toLocaleString("en-US")} images/s`, memory ? `, ${Math.round(memory / 2 ** 20)} MiB` : "", el("span", { class: "machine muted" }, ` ${machine}`)],
  ];
  return costHeads(track).map((_, i) => el("td", {}, cells[i]));
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
      el("td", { colspan: 2 + costHeads(track).length })),
    el("tr", {},
      fixed("pick", el("span", { class: "unseen" }, "compare")),
      head("tier", "tier", { class: "tier" }),
      head("name", "entry", { class: "entry" }),
      head("overall", "overall"),
      el("th", { scope: "col", title: "95 % interval of the rank, bootstrap over episodes" }, "rank"),
      columns.map((column) => head(column.index, [columnTitle(column), kindNote(track, column)], { title: column.name })),
      head("source", "source", { title: "in-domain accuracy" }),
      costHeads(track).map(([key, label, title]) => (key ? head(key, label, { title }) : el("th", { scope: "col", title }, label))),
      el("th", { scope: "col" }, "flags")));
}

function kindNote(track, column) {
  const several = column.n_shot !== undefined && kindsOf(track).filter((k) => !/probe|knn/.test(k)).length > 1;
  return several ? el("span", { class: "small" }, ` ${column.head}`) : null;
}

function tierHead(title, width) {
  const [name, note] = title;
  return el("tr", { class: "tier-head" },
    el("th", { colspan: width, scope: "rowgroup" },
      el("span", {}, name, el("span", { class: "muted" }, ` · ${note}`))));
}

function tableRow(track, row, columns, ranges, state, on) {
  const chosen = state.chosen.includes(row.name);
  const shape = row.seeds.length ? null : "single";
  return el("tr", { class: [shape, chosen && "chosen"].filter(Boolean).join(" ") || null },
    el("td", { class: "pick" }, el("label", {},
      el("input", {
        type: "checkbox", checked: chosen, "aria-label": `compare ${row.name}`,
        onchange: (event) => on.choose(row.name, event.target.checked),
      }))),
    el("td", { class: "tier" }, badge(row)),
    el("th", { class: "entry", scope: "row" },
      el("a", { href: on.address(row.name), class: "name", title: row.name }, breakable(row.name)),
      expander(row.name, row.seeds.length, state, on),
      shortLinks(row.link)),
    measured(row, -1, ranges.get(-1), track),
    el("td", { class: "muted" }, [...new Set(track.ranks[row.name] ?? ["–"])].join("–")),
    columns.map((column) => measured(row, column.index, ranges.get(column.index), track)),
    el("td", { class: row.source_accuracy === undefined ? "absent" : null }, percent(row.source_accuracy),
      row.source_accuracy === undefined ? null : selfMark(row, -1)),
    costsOf(track, row),
    el("td", { class: "flags muted" },
      row.reason && el("span", { class: "reason" }, `${row.reason} `),
      flagTags(row)));
}

// One seed under its row; its intervals cover episodes only.
function seedRow(track, seed, columns, ranges, on) {
  return el("tr", { class: "seed single" },
    el("td", { class: "pick" }), el("td", { class: "tier" }),
    el("th", { class: "entry", scope: "row" },
      el("a", { href: on.address(seed.name), class: "name", title: seed.name }, `seed ${seed.seed}`)),
    measured(seed, -1, ranges.get(-1), track),
    el("td"),
    columns.map((column) => measured(seed, column.index, ranges.get(column.index), track)),
    el("td", {}, percent(seed.source_accuracy)),
    el("td", { class: "flags muted", colspan: 1 + costHeads(track).length }));
}

// A row is an entry, of one network or of several seeds.
function nounsOf(track) {
  return track.entries.some((row) => row.seeds.length) ? ["row", "rows"] : ["entry", "entries"];
}

function expander(name, seeds, state, on) {
  if (!(seeds > 1)) return null;
  const open = state.open.has(name);
  return el("button", {
    type: "button", class: "expander", "aria-expanded": String(open), "data-expand": name,
    onclick: () => on.expand(name),
  }, `${open ? "▾" : "▸"} ${seeds} seeds`);
}

// The flags of a row; what its signed badges say is one of them.
function flagTags(row) {
  const { words, verdict } = factsOf(row.name).badge ?? {};
  return row.flags.map((flag) =>
    [el("span", { class: flag === words ? `tag ${verdict ?? ""}` : "tag", title: board.flags[flag] }, flag), " "]);
}

function selfSign() {
  return el("span", { class: "self", title: "self-reported: no signed badge" }, "ˢ");
}

// Places of the columns in which a row has a flag.
function flagged(row, flag) {
  return row.column_flags[flag] ?? [];
}

// Beside a number: what its signed badge says, or that it has none; column -1 is the mean over all.
function selfMark(row, column) {
  const unsigned = flagged(row, "self-reported");
  if (column < 0) return unsigned.length ? selfSign() : null;
  if (unsigned.includes(column)) return selfSign();
  return flagged(row, "failed verification").includes(column)
    ? el("span", { class: "mark failed", title: "failed: recomputed from the weights, outcomes differ" }, "✗")
    : el("span", { class: "mark verified", title: "verified: recomputed from the weights" }, "✓");
}

// Rows of one seed beside rows of several have tiers of their own, drawn hollow.
function tierOf(row) {
  return row.tier && (row.reason ? `◦${row.tier}` : row.tier);
}

function badge(row) {
  if (row.tier === undefined) return el("span", { class: "muted", title: row.reason }, "–");
  const tier = tierOf(row);
  return el("span", { class: tier === 1 ? "badge first" : "badge", title: `tier ${tier}` }, String(tier));
}

function measured(row, column, range, track) {
  const score = scoreOf(row, column);
  if (!score) return el("td", { class: "absent" }, "–");
  const shade = `q${step(score.mean, range)}`;
  const colour = column < 0 ? "overall" : `shade ${shade}`;
  const best = row.best.includes(column) ? " best" : "";
  const span = range.high - range.low || 1;
  const half = score.half ?? 0;
  const of = column < 0 ? "overall" : track.columns[column].name;
  const place = (value) => Math.min(Math.max((value - range.low) / span, 0), 1);
  const beyond = score.mean < range.low ? " below" : score.mean > range.high ? " above" : "";
  return el("td", {
    class: `cell ${colour}${best}${beyond}`,
    title: `${of}: ${percent(score.mean)}${plusMinus(score.half)}${score.n ? `, n = ${score.n}` : ""}`,
    "--fill": `var(--${shade})`,
    "--mean": place(score.mean),
    "--low": place(score.mean - half),
    "--wide": place(score.mean + half) - place(score.mean - half),
  }, percent(score.mean), el("span", { class: "unseen" }, plusMinus(score.half)), selfMark(row, column));
}

function filtered(track, state) {
  const { query, ranked } = state;
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return track.entries.filter((row) => {
    const facts = factsOf(row.name);
    const text = [row.name, ...row.seeds.map((seed) => seed.name), facts.authors, facts.architecture, facts.recipe, facts.ref, ...row.flags]
      .join(" ").toLowerCase();
    return (!ranked || row.tier !== undefined)
      && DECLARED.every(([name]) => !state[name] || declared(row, name).includes(state[name]))
      && words.every((word) => text.includes(word));
  });
}

function sorted(track, rows, { key, down }) {
  const place = new Map(track.entries.map((row, i) => [row, i]));
  const value = (row) => {
    if (key === "tier") return place.get(row);
    if (key === "name") return row.name.toLowerCase();
    if (key === "source") return row.source_accuracy;
    if (key === "parameters") return row.parameters;
    if (key === "macs") return row.cost?.macs;
    return scoreOf(row, key === "overall" ? -1 : key)?.mean;
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
  for (const row of rows) groups.set(tierOf(row), [...(groups.get(tierOf(row)) ?? []), row]);
  return [...groups].map(([tier, members]) => {
    const rows = track.entries.filter((row) => tierOf(row) === tier);
    if (tier === undefined) return { title: ["Unranked", "each with its reason"], members };
    const noise = rows.every((row) => row.covers && row.covers !== "episodes") ? "seed and episode noise" : "episode noise only";
    const title = rows.length > 1 ? [`Tier ${tier}`, `${plural(rows.length, ...nounsOf(track))} statistically tied (${noise})`] : null;
    return { title, members };
  });
}
