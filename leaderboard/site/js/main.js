// Routes, state and the theme. An address is #/m (methods), #/t/TRACK, #/t/TRACK/e/ENTRY or
// #/t/TRACK/c/A/B...; without one, the first tab.

const FRESH = { query: "", dataset: "", kind: "", pretraining_data: "", targets_seen: "", ranked: false, sort: { key: "tier", down: false } };
const states = board.tracks.map(() => ({ ...FRESH, chosen: [], open: new Set() }));
const root = document.getElementById("main");

function addressOf(...parts) {
  return `#/t/${parts.map(encodeURIComponent).join("/")}`;
}

function route() {
  const parts = location.hash.split("/").slice(1).map((part) => {
    try { return decodeURIComponent(part); } catch { return ""; }
  });
  const index = parts[0] === "t" && board.tracks[Number(parts[1])] ? Number(parts[1]) : 0;
  const track = board.tracks[index];
  const seeds = track?.entries.flatMap((row) => row.seeds) ?? [];
  const rows = parts.slice(3).map((name) => [...(track?.entries ?? []), ...seeds].find((row) => row.name === name)).filter(Boolean);
  const methods = board.methods.length && parts[0] !== "t";
  return { index, track, rows, view: methods ? "m" : rows.length ? parts[2] : "" };
}

function show({ focus = true } = {}) {
  const { index, track, rows, view } = route();
  document.querySelector(".tray")?.remove();
  root.replaceChildren(el("p", { class: "unseen", id: "status", role: "status" }));
  document.getElementById("submit").open = !board.count;
  if (!track?.entries.length) {
    root.append(el("p", { class: "finding" }, "No entries yet: the steps above lead to the first one."));
    if (track) root.append(el("p", { class: "note" }, track.data), publishedSection(track) ?? "");
    return;
  }
  const on = actions(index);
  if (view === "m") root.append(...[tabs("#/m"), ...methodsPage()].filter(Boolean));
  else if (view === "e") root.append(...entryPage(track, index, rows[0], on));
  else if (view === "c" && rows.length > 1) root.append(...comparePage(track, rows, on).filter(Boolean));
  else showBoard(track, index, on);
  const here = rows.map((row) => row.name).join(" against ");
  for (const box of document.querySelectorAll(".box")) {
    edges(box);
    box.addEventListener("scroll", () => edges(box), { passive: true });
  }
  document.title = `${here || (view === "m" ? "Methods" : track.title)} · ${board.board}`;
  const tab = document.querySelector(".tabs [aria-current]"); // scrollIntoView would move the focus
  if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft;
  if (focus && rows.length) {
    scrollTo(0, 0);
    root.focus({ preventScroll: true });
  }
}

function showBoard(track, index, on) {
  const box = el("div", { class: "box", id: "board", tabindex: 0, role: "region", "aria-label": `${track.title}, scrolls sideways` });
  const warning = track.warning && el("p", { class: "note" }, `Warning: ${track.warning}`);
  const opening = [
    track.finding && el("p", { class: "finding" }, track.finding),
    el("p", { class: "note" }, [track.data, ...track.notes].join(" ")),
  ];
  root.append(...[tabs(addressOf(index)), ...opening, warning, controls(track, states[index], on), box, legend(track), panelsSection(track), publishedSection(track)].filter(Boolean));
  refresh(index);
}

// Marks the sides of a box beyond which its table goes on.
function edges(box) {
  box.classList.toggle("scrolled", box.scrollLeft > 0);
  box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
}

// The table and the tray anew; the controls keep their focus, a header gets it back.
function refresh(index) {
  const [track, state, on] = [board.tracks[index], states[index], actions(index)];
  const box = document.getElementById("board");
  const held = document.activeElement?.dataset?.sort;
  const picked = document.activeElement?.getAttribute?.("aria-label");
  const expanded = document.activeElement?.dataset?.expand;
  if (box) {
    const { table, count } = boardTable(track, state, on);
    box.replaceChildren(count ? table : el("p", { class: "empty" }, "No entry matches."));
    edges(box);
    document.getElementById("count").textContent =
      (count === track.entries.length ? "" : `${count} of `) + plural(track.entries.length, ...nounsOf(track));
    if (held) box.querySelector(`[data-sort="${CSS.escape(held)}"]`)?.focus();
    else if (expanded) box.querySelector(`[data-expand="${CSS.escape(expanded)}"]`)?.focus();
    else if (picked) box.querySelector(`[aria-label="${CSS.escape(picked)}"]`)?.focus();
  }
  document.querySelector(".tray")?.remove();
  const chosen = tray(state, on);
  if (chosen) document.body.append(chosen);
}

function actions(index) {
  const state = states[index];
  return {
    back: addressOf(index),
    address: (name) => addressOf(index, "e", name),
    sort(key) {
      const again = state.sort.key === key;
      state.sort = { key, down: again ? !state.sort.down : !["tier", "name", "parameters", "macs"].includes(key) };
      refresh(index);
      announce(`sorted, ${state.sort.down ? "highest" : "lowest"} first`);
    },
    filter(change) {
      Object.assign(state, change);
      if (!shownColumns(board.tracks[index], state).some((c) => c.index === state.sort.key) && typeof state.sort.key === "number") {
        state.sort = FRESH.sort;
      }
      refresh(index);
      announce(document.getElementById("count").textContent);
    },
    choose(name, wanted) {
      state.chosen = state.chosen.filter((each) => each !== name);
      if (wanted) state.chosen = [...state.chosen, name].slice(-MAX_COMPARED);
      if (document.getElementById("board")) refresh(index);
      else location.hash = addressOf(index);
    },
    expand(name) {
      state.open[state.open.has(name) ? "delete" : "add"](name);
      refresh(index);
    },
    clear() {
      state.chosen = [];
      refresh(index);
    },
    compare() {
      location.hash = addressOf(index, "c", ...state.chosen);
    },
  };
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
}

document.getElementById("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  root.focus();
  root.scrollIntoView();
});
addEventListener("hashchange", () => show());
addEventListener("resize", () => document.querySelectorAll(".box").forEach(edges));
show({ focus: false });
