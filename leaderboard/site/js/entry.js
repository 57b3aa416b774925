// The page of one entry: facts, provenance, all results, how to recompute them.

const FACTS = [
  ["authors", "authors"], ["link", "link"], ["license", "license"], ["statement", "statement"],
  ["pretraining_data", "pretraining data"], ["targets_seen", "targets seen"],
  ["submitted", "submitted"],
];
const BACKBONE = [
  ["ref", "reference"], ["architecture", "architecture"], ["n_parameters", "parameters"],
  ["features", "features"], ["feature_choices", "chosen features"], ["feature_dim", "dimensions"],
  ["preprocessing", "preprocessing"], ["images", "evaluated on images of"],
  ["recipe", "recipe"], ["steps", "optimizer steps"], ["random_init", "random weights, seed"],
  ["source_accuracy", "in-domain accuracy"],
];
const COST = [
  ["macs", "multiply-adds per image"], ["images_per_second", "images per second"],
  ["peak_memory_bytes", "peak memory, bytes"], ["machine", "measured on"],
];
function fact(name, value) {
  if (name === "link") return link(value);
  if (name === "source_accuracy") return `${percent(value)} %`;
  if (typeof value === "number" && name !== "random_init") return value.toLocaleString("en-US");
  if (Array.isArray(value)) return value.join(", ") || "none";
  return String(value);
}

function factList(names, holder) {
  return el("dl", { class: "facts" }, names
    .filter(([name]) => holder[name] !== undefined && holder[name] !== null)
    .map(([name, label]) => [el("dt", {}, label), el("dd", {}, fact(name, holder[name]))]));
}

function standingText(track, row) {
  if (row.seed !== undefined) {
    return `One seed of a row: overall ${percent(row.overall)}${plusMinus(row.overall_ci95)}, interval over episodes only.`;
  }
  if (row.tier === undefined) {
    return `Unranked: ${row.reason}.`;
  }
  const ties = track.entries.filter((other) => tierOf(other) === tierOf(row)).length - 1;
  const tied = ties ? `, tied with ${plural(ties, "entry", "entries")}` : "";
  const { gap, ci95, p_adjusted: p } = row.behind_leader ?? {};
  const behind = row.behind_leader
    ? ` ${signed(-gap)}${plusMinus(ci95)} points to the leader of the tier (${shownP(p)}, adjusted).`
    : " It leads its tier.";
  const ranks = track.ranks[row.name] ? ` Rank ${track.ranks[row.name].join(" to ")} (95 %, bootstrap over episodes).` : "";
  return `Tier ${tierOf(row)}${tied}.${ranks} Overall ${percent(row.overall)}${plusMinus(row.overall_ci95)} over ${plural(track.columns.length, "column", "columns")}.${behind}`;
}

function entryPage(track, index, row, on) {
  const facts = factsOf(row.name);
  return [
    el("p", { class: "crumb" }, el("a", { href: on.back }, "← ", track.title)),
    el("div", { class: "title" },
      el("h2", {}, row.name), badge(row),
      flagTags(row), shortLinks(facts.link)),
    flagged(row, "self-reported").length && el("p", { class: "note", id: "trust" }, board.trust),
    el("p", { class: "lead" }, standingText(track, row)),
    el("p", { class: "lead" },
      el("button", { type: "button", onclick: () => on.choose(row.name, true) }, "Compare with another entry")),
    el("div", { class: "columns" },
      el("section", {}, el("h3", {}, "Declared"), factList(FACTS, facts)),
      el("section", {}, el("h3", {}, "Backbone"), factList([...BACKBONE, ...COST], { ...facts, ...row.cost }))),
    cellsSection(track, row),
    spreadSection(track, row),
    row.seeds?.length ? seedsSection(row, on) : null,
    hashesSection(track, row, facts),
    row.seeds?.length ? null : recomputeSection(row, facts),
  ].filter(Boolean);
}

function seedsSection(row, on) {
  return el("section", { id: "seeds" },
    el("h2", {}, "Seeds"),
    el("p", { class: "note" }, "Each is a network with its own weights and commands; its interval covers episodes only."),
    el("table", { class: "plain" }, el("tbody", {}, row.seeds.map((seed) => el("tr", {},
      el("th", { scope: "row" }, el("a", { href: on.address(seed.name) }, seed.name)),
      el("td", {}, `${percent(seed.overall)}${plusMinus(seed.overall_ci95)}`))))));
}

function cellsSection(track, row) {
  const line = (column, i) => {
    const score = scoreOf(row, i);
    const name = el("th", { scope: "row" }, column.name);
    if (!score) return el("tr", {}, name, ["–", "", ""].map((text) => el("td", { class: "absent" }, text)));
    const others = track.entries.map((other) => scoreOf(other, i)?.mean).filter((mean) => mean !== undefined);
    return el("tr", {}, name,
      el("td", {}, `${percent(score.mean)}${plusMinus(score.half)}`, selfMark(row, i)), el("td", {}, score.n),
      el("td", {}, `${1 + others.filter((mean) => mean > score.mean).length} of ${others.length}`));
  };
  return el("section", { id: "cells" },
    el("h2", {}, "Results"),
    el("p", { class: "note" }, "Percent with 95 % intervals over episodes or test images; n of them; place by mean. ",
      flagged(row, "self-reported").length ? board.self_note : null),
    el("div", { class: "box", tabindex: 0, role: "region", "aria-label": "results by column" },
      el("table", { class: "plain" },
        el("thead", {}, el("tr", {}, ["column", "accuracy", "n", "place"].map((text) => el("th", { scope: "col" }, text)))),
        el("tbody", {}, track.columns.map(line)))));
}

function spreadSection(track, row) {
  const plots = el("div", { class: "plots" });
  const section = el("section", { id: "episodes", hidden: true },
    el("h2", {}, "Episodes"),
    el("p", { class: "note" }, "How many episodes reached which accuracy (percent). Line: mean; dashed: chance."),
    plots);
  unpack(track, "histograms").then((bytes) => {
    const place = track.entries.indexOf(row);
    track.columns.forEach((column, c) => {
      const counts = histogram(bytes, track, place, c);
      if (!counts.some(Boolean)) return;
      const { mean, half, n } = scoreOf(row, c);
      plots.append(el("figure", {},
        el("figcaption", {}, el("b", {}, column.label), ` ${percent(mean)}${plusMinus(half)}`),
        drawHistogram(counts, mean, column.n_way && 1 / column.n_way, `${column.name}: ${n} episodes, mean ${percent(mean)} %`)));
    });
    section.hidden = !plots.childElementCount;
  });
  return section;
}

function hashesSection(track, row, facts) {
  const columns = track.columns.filter((column, i) => scoreOf(row, i));
  return el("section", { id: "hashes" },
    el("h2", {}, "Hashes"),
    el("p", { class: "note" },
      "The digest of the entry covers all that is shown of it, every outcome too. Images, episodes and settings of a column are those of all rows, by the start of their SHA-256."),
    el("dl", { class: "facts" },
      el("dt", {}, "entry"), el("dd", { class: "hash" }, facts.digest),
      facts.code && [el("dt", {}, "code"), el("dd", { class: "hash" }, facts.code)],
      facts.weights_hash && [el("dt", {}, "weights"), el("dd", { class: "hash" }, facts.weights_hash)]),
    el("details", {}, el("summary", {}, "column by column"),
      el("div", { class: "box", tabindex: 0, role: "region", "aria-label": "hashes by column" },
        el("table", { class: "plain" },
          el("thead", {}, el("tr", {}, ["column", "images", "episodes", "settings"].map((text) => el("th", { scope: "col" }, text)))),
          el("tbody", {}, columns.map((column) => el("tr", {},
            el("th", { scope: "row" }, column.name),
            [column.fingerprint, column.manifest_hash ?? "–", column.spec_digest].map((hash) => el("td", { class: "hash" }, hash.slice(0, 12))))))))));
}

// A word that a shell takes as it is.
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function recomputeSection(row, facts) {
  return el("section", { id: "recompute" },
    el("h2", {}, "Recompute"),
    el("p", { class: "note" }, "The first command prints the environment and the commands for all results, from their checked recipes and specs; the second recomputes random episodes from the weights."),
    el("pre", {}, `fsbench leaderboard recompute ${quoted(facts.entry ?? row.name)} --board DIR\nfsbench leaderboard verify ${quoted(row.name)} --board DIR -m ${quoted(facts.ref)}`),
    el("p", { class: "note given" }, "Command reported by the submitter (not verified):"),
    facts.environments.map(({ command, packages, ...made }) => [
      el("pre", {}, command),
      factList(Object.keys(made).map((name) => [name, name.replaceAll("_", " ")]), made),
      el("details", {}, el("summary", {}, "packages"),
        el("p", { class: "small" }, Object.entries(packages).map((parts) => parts.join(" ")).join(", "))),
    ]));
}
