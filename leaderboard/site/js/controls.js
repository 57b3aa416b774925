// Tabs, filters, and the tray of entries chosen for comparison.

// The method board comes first. Arrow keys and the wheel reach what a narrow page hides.
function tabs(current) {
  const pages = [
    ...(board.methods.length ? [["#/m", "Methods"]] : []),
    ...board.tracks.map((track, i) => [addressOf(i), track.title]),
  ];
  if (pages.length < 2) return null;
  const bar = el("nav", {
    class: "tabs", "aria-label": "tables",
    onkeydown: (event) => {
      const links = [...bar.children];
      const place = links.indexOf(document.activeElement);
      const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: links.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      links[Math.min(Math.max(next, 0), links.length - 1)].focus();
    },
    onwheel: (event) => {
      const before = bar.scrollLeft;
      bar.scrollLeft += Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY;
      if (bar.scrollLeft !== before) event.preventDefault();
    },
  }, pages.map(([href, title]) =>
    el("a", { href, "aria-current": href === current ? "page" : null }, title)));
  return bar;
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
    DECLARED.map(([name, label]) =>
      choice(label, declaredBy(track, name), state[name], (value) => on.filter({ [name]: value }))),
    track.entries.some((row) => row.tier === undefined)
      ? el("label", {},
        el("input", {
          type: "checkbox", id: "ranked", checked: state.ranked,
          onchange: (event) => on.filter({ ranked: event.target.checked }),
        }), "ranked only")
      : null,
    el("span", { class: "count", id: "count" }));
}

function legend(track) {
  return el("div", { class: "legend" },
    el("span", { class: "scale" }, "colour: place in the column, lowest",
      el("span", {}, Array.from({ length: STEPS }, (_, i) => el("i", { class: `q${i}` }))), "highest"),
    el("span", { class: "scale" }, el("i", { class: "q5" }), "several seeds", el("i", { class: "hollow" }), "one network"),
    el("span", {}, "line under a number: its 95 % interval on the range of the column (‹ ›: beyond it)"),
    el("span", {}, "✓ verified: a signed badge, recomputed from the weights"),
    el("span", {}, board.self_note),
    costHeads(track).length > 1 ? el("span", {}, "measured: speed and memory of one machine, not comparable with those of another one") : null,
    Object.entries(board.flags).map(([flag, meaning]) => el("span", {}, el("span", { class: "tag" }, flag), ` ${meaning}`)));
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
