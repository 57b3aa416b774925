// Two or more entries side by side; the first is compared with each other one.

const MAX_COMPARED = 8;

function comparePage(track, rows, on) {
  const main = el("div", { class: "pairs" });
  const page = [
    el("p", { class: "crumb" }, el("a", { href: on.back }, "← ", track.title)),
    el("h2", { class: "unseen" }, rows.length === 2 ? `${rows[0].name} against ${rows[1].name}` : `${rows.length} entries`),
    el("p", { class: "compared" }, rows.map((row, i) =>
      el("span", {}, el("i", { class: `dot c${i % 8}` }), el("a", { href: on.address(row.name) }, row.name)))),
    main,
    sideBySide(track, rows),
    shotsSection(track, rows),
  ];
  unpack(track, "pairs").then((bytes) => {
    const [first, ...others] = rows;
    main.append(...others.map((other) => pairSection(track, bytes, first, other)));
    announce("comparison ready");
  });
  return page;
}

function pairSection(track, bytes, a, b) {
  const found = (column) => gapOf(bytes, track, a, b, column);
  const rows = track.columns
    .map((column, c) => ({ label: column.label, ...found(c) }))
    .filter((row) => row.gap !== undefined);
  const overall = found(-1);
  const all = overall ? [{ label: "overall", ...overall }, ...rows] : rows;
  const apart = rows.filter((row) => !row.paired).length;
  return el("section", { class: "pair" },
    el("h3", {}, `${a.name} minus ${b.name}`),
    el("p", { class: "verdict" }, verdict(a, b, overall, rows)),
    el("p", { class: "note" },
      "Gap in points with its paired 95 % interval (its width within 0.5 %); colour where it excludes 0. ",
      apart ? `${plural(apart, "column is", "columns are")} not paired here (a seed of a row, other episodes, or beyond the entries that the page pairs): as independent samples. ` : "",
      [a, b].some((row) => !(row.seeds?.length > 1)) ? "This speaks of these networks: with one seed on a side it says nothing about the methods. " : "",
      "Several columns are several tests, for which nothing is corrected here."),
    el("div", { class: "box", tabindex: 0, role: "region", "aria-label": "gaps by column" },
      drawGaps(all, `${a.name} minus ${b.name} by column`, Math.min(root.clientWidth, 640))),
    el("details", {}, el("summary", {}, "as numbers"),
      el("div", { class: "box" }, gapTable(all))));
}

function verdict(a, b, overall, rows) {
  const wins = rows.filter((row) => standsOut(row) && row.gap > 0).length;
  const losses = rows.filter((row) => standsOut(row) && row.gap < 0).length;
  const cells = `Ahead in ${wins}, behind in ${losses}, not to be told apart in ${rows.length - wins - losses} of ${plural(rows.length, "column", "columns")}.`;
  if (!overall) return `No overall gap: one of the two lacks a column. ${cells}`;
  if (!standsOut(overall)) {
    return `Overall not distinguishable: ${signed(overall.gap)}${plusMinus(overall.half)} points. ${cells}`;
  }
  const [best, worst] = overall.gap > 0 ? [a, b] : [b, a];
  return [
    el("b", {}, best.name), " is ahead of ", el("b", {}, worst.name),
    ` by ${percent(Math.abs(overall.gap))}${plusMinus(overall.half)} points overall (${shownP(overall.p)}). ${cells}`,
  ];
}

function gapTable(rows) {
  return el("table", { class: "plain" },
    el("thead", {}, el("tr", {}, ["column", "gap", "95 % interval", "p"].map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((row) => el("tr", {},
      el("th", { scope: "row" }, row.label),
      el("td", { class: standsOut(row) ? (row.gap > 0 ? "ahead" : "behind") : null }, signed(row.gap)),
      el("td", {}, row.half === null ? "–" : `${signed(row.gap - row.half)} to ${signed(row.gap + row.half)}`),
      el("td", {}, row.p === null ? "–" : shownP(row.p).replace("p ", "").replace("= ", ""))))));
}

function sideBySide(track, rows) {
  const line = (label, title, column) => {
    const scores = rows.map((row) => scoreOf(row, column));
    const best = Math.max(...scores.filter(Boolean).map((score) => score.mean));
    return el("tr", {},
      el("th", { scope: "row", title }, label),
      scores.map((score, i) => el("td", { class: score?.mean === best ? "best" : null },
        score ? [`${percent(score.mean)}${plusMinus(score.half)}`, selfMark(rows[i], column)] : "–")));
  };
  const factLine = (label, name) => {
    const values = rows.map((row) => factsOf(row.name)[name]);
    if (values.every((value) => value === undefined)) return null;
    return el("tr", {}, el("th", { scope: "row", class: "muted" }, label),
      values.map((value) => el("td", {}, value === undefined ? "–" : fact(name, value))));
  };
  return el("section", { id: "side" },
    el("h2", {}, "Side by side"),
    el("div", { class: "box", tabindex: 0, role: "region", "aria-label": "entries side by side" },
      el("table", { class: "plain" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, ""), rows.map((row, i) =>
          el("th", { scope: "col" }, el("i", { class: `dot c${i % 8}` }), row.name)))),
        el("tbody", {},
          el("tr", {}, el("th", { scope: "row", class: "muted" }, "tier"), rows.map((row) => el("td", {}, tierOf(row) ?? "–"))),
          line("overall", "", -1),
          track.columns.map((column, c) => line(column.label, column.name, c)),
          factLine("architecture", "architecture"), factLine("parameters", "n_parameters"),
          factLine("recipe", "recipe"), factLine("optimizer steps", "steps"),
          factLine("in-domain accuracy", "source_accuracy")))));
}

// Accuracy against shots: one plot a data set and adaptation with two or more numbers of shots.
function shotsSection(track, rows) {
  const plots = new Map();
  track.columns.forEach((column, c) => {
    if (column.n_shot === undefined) return;
    const key = `${column.dataset} ${column.head}`;
    plots.set(key, [...(plots.get(key) ?? []), { shots: column.n_shot, c }]);
  });
  const figures = [...plots].filter(([, points]) => points.length > 1).map(([key, points]) => {
    const series = rows.map((row) => ({
      name: row.name,
      points: points.filter(({ c }) => scoreOf(row, c)).map(({ shots, c }) => ({ shots, ...scoreOf(row, c) })),
    }));
    if (series.every((each) => !each.points.length)) return null;
    return el("figure", {}, el("figcaption", {}, el("b", {}, key)),
      drawShots(series, `${key}: accuracy by shots`));
  });
  if (!figures.some(Boolean)) return null;
  return el("section", { id: "shots" },
    el("h2", {}, "Accuracy by shots"),
    el("p", { class: "note" }, "Percent against images a class; bands are 95 % intervals. ",
      rows.map((row, i) => [el("i", { class: `dot c${i % 8}` }), row.name, "  "])),
    el("div", { class: "plots" }, figures));
}
