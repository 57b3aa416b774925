// The method board: pretraining methods against plain training of equal compute, table by table.

const openMethods = new Set();

function methodsPage() {
  return board.methods.flatMap((page) => [
    el("section", { class: "methods" },
      el("h2", {}, page.title),
      page.finding && el("p", { class: "finding" }, page.finding),
      el("p", { class: "note" }, page.data),
      el("div", { class: "box", tabindex: 0, role: "region", "aria-label": `methods, ${page.title}` }, methodTable(page)),
      el("div", { class: "legend" },
        el("span", {}, el("b", { class: "dots" }, "●"), " two or more seeds: the interval covers seeds"),
        el("span", {}, el("b", { class: "dots" }, "○"), " one seed, drawn hollow: never significant"),
        el("span", {}, "colour: significant after Holm’s correction"),
        el("span", {}, board.self_note)),
      page.notes.length ? el("details", {}, el("summary", {}, "missing comparisons"),
        page.notes.map((note) => el("p", { class: "small lead" }, note))) : null),
    panelsSection(page),
  ]);
}

function methodTable(page) {
  const on = actions(page.track);
  const ranges = new Map(page.kinds.map(([kind]) => [kind, gainRange(page.rows.map((row) => row.overall?.gains[kind]).filter(Boolean))]));
  const heads = ["entry", el("span", { class: "wide-only" }, "seeds"), "overall", ...page.kinds.map(([, words]) => `gain ${words}`), "in-domain", "TFLOPs"];
  const table = el("table", { class: "plain" },
    el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, page.rows.map((row) => methodRows(page, row, ranges, on))));
  table.addEventListener("click", (event) => {
    const name = event.target.dataset?.expand;
    if (name === undefined) return;
    openMethods[openMethods.has(name) ? "delete" : "add"](name);
    table.replaceWith(methodTable(page));
    document.querySelector(`[data-expand="${CSS.escape(name)}"]`)?.focus();
  });
  return table;
}

// The ends of all intervals without outliers, and zero.
function gainRange(gains) {
  const ends = gains.flatMap(({ gap, ci95 }) => [gap - (ci95 ?? 0), gap + (ci95 ?? 0)]);
  const inside = [0, ...withoutOutliers(ends.sort((a, b) => a - b))];
  return { low: Math.min(...inside), high: Math.max(...inside) };
}

function methodRows(page, row, ranges, on) {
  const key = `${page.track} ${row.name}`;
  const open = openMethods.has(key);
  const score = row.overall;
  const several = row.seeds.length > 1;
  const dots = several ? "●".repeat(row.seeds.length) : "○";
  const line = el("tr", { class: several ? null : "single" },
    el("th", { scope: "row" },
      el("a", { href: on.address(row.name), class: "name" }, breakable(row.name)),
      el("span", { class: "small", title: row.plan }, ` ${row.method} `),
      el("span", { class: "dots narrow-only" }, ` ${dots}`),
      row.baseline ? [" ", el("span", { class: "tag" }, "baseline")] : null,
      several ? el("button", {
        type: "button", class: "expander", "aria-expanded": String(open), "data-expand": key,
        "aria-label": `${row.seeds.length} seeds of ${row.name}`,
      }, open ? "▾ seeds" : "▸ seeds") : null,
      shortLinks(factsOf(row.name).link)),
    el("td", { class: "dots", title: plural(row.seeds.length, "seed", "seeds") }, el("span", { class: "wide-only" }, dots)),
    el("td", {}, score ? `${percent(score.mean)}${plusMinus(score.ci95_seeds ?? score.ci95)}` : "–", score && row.self_reported ? selfSign() : null),
    page.kinds.map(([kind]) => gainCell(score?.gains[kind], ranges.get(kind))),
    el("td", {}, percent(row.source_accuracy)),
    el("td", {}, row.costs.flops ? shortNumber(Number((row.costs.flops / 1e12).toPrecision(3))) : "–"));
  const entry = board.tracks[page.track].entries.find((other) => other.name === row.name);
  const seeds = open ? (entry?.seeds ?? []).map((one) => el("tr", { class: "seed single" },
    el("th", { scope: "row" }, el("a", { href: on.address(one.name), class: "name" }, `seed ${one.seed}`)),
    el("td", { class: "dots" }, el("span", { class: "wide-only" }, "○")),
    el("td", {}, `${percent(one.overall)}${plusMinus(one.overall_ci95)}`),
    page.kinds.map(() => el("td")),
    el("td", {}, percent(one.source_accuracy)), el("td"))) : [];
  return [line, ...seeds];
}

// A gain in points with its interval; hollow if one seed is behind it.
function gainCell(gain, range) {
  if (!gain) return el("td", { class: "absent" }, "–");
  const { gap, ci95: half, seeds, significant } = gain;
  const side = significant ? (gap > 0 ? " ahead" : " behind") : "";
  const span = range.high - range.low || 1;
  const place = (value) => Math.min(Math.max((value - range.low) / span, 0), 1);
  const beyond = gap < range.low ? " below" : gap > range.high ? " above" : "";
  return el("td", {
    class: `gain${side}${seeds.length > 1 ? "" : " hollow"}${beyond}`,
    "--zero": place(0), "--mean": place(gap), "--low": place(gap - (half ?? 0)),
    "--wide": place(gap + (half ?? 0)) - place(gap - (half ?? 0)),
  }, el("span", {}, signed(gap), plusMinus(half)), el("i", { class: "whisker" }));
}
