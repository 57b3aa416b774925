// Tabs of tracks, filters, and the tray of entries chosen for comparison.

function tabs(current) {
  if (board.tracks.length < 2) return null;
  return el("nav", { class: "tabs", "aria-label": "tracks" },
    board.tracks.map((track, i) =>
      el("a", { href: `#/t/${i}`, "aria-current": i === current ? "page" : null }, track.title)));
}

function choice(label, options, value, onchange) {
  if (options.length < 2) return null;
  return el("label", {}, label,
    el("select", { "aria-label": label, onchange: (event) => onchange(event.target.value) },
      el("option", { value: "" }, "all"),
      options.map((option) => el("option", { value: option, selected: option === value }, option))));
}

function controls(track, state, on) {
  return el("div", { class: "controls", role: "search" },
    el("input", {
      type: "search", id: "filter", placeholder: "Filter entries", "aria-label": "Filter entries",
      value: state.query, autocomplete: "off", spellcheck: "false",
      oninput: (event) => on.filter({ query: event.target.value }),
    }),
    choice("data set", datasetsOf(track), state.dataset, (dataset) => on.filter({ dataset })),
    choice("adaptation", kindsOf(track), state.kind, (kind) => on.filter({ kind })),
    track.rows.some((row) => row.tier === undefined)
      ? el("label", {},
        el("input", {
          type: "checkbox", id: "ranked", checked: state.ranked,
          onchange: (event) => on.filter({ ranked: event.target.checked }),
        }), "ranked only")
      : null,
    el("span", { class: "count", id: "count" }),
    el("span", { class: "end" }, downloads(track)));
}

function legend() {
  return el("div", { class: "legend" },
    el("span", { class: "scale" }, "lowest of the column",
      el("span", {}, Array.from({ length: STEPS }, (_, i) => el("i", { class: `q${i}` }))), "highest"),
    el("span", {}, "line under a number: its 95 % interval on the range of the column"),
    el("span", {}, board.self_note));
}

function tray(state, on) {
  const names = state.chosen;
  if (!names.length) return null;
  return el("div", { class: "tray", role: "region", "aria-label": "chosen entries" },
    el("div", { class: "wide" },
      el("span", { class: "names" }, names.join(", ")),
      el("button", { type: "button", id: "clear", class: "quiet", onclick: on.clear }, "Clear"),
      el("button", {
        type: "button", id: "compare", class: "primary", disabled: names.length < 2,
        onclick: on.compare,
      }, names.length < 2 ? "Choose another" : `Compare ${names.length}`)));
}
