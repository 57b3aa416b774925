// Charts made when the site was built; each comes drawn for a desk and for a phone.

function panelsSection(track) {
  if (!track.panels) return null;
  const section = el("section", { id: "panels" });
  unpackJson(track, "panels").then((panels) => section.append(...panels.map(panelFigure)));
  return section;
}

function panelFigure({ title, note, whole, drawings }) {
  const names = ["wide-only", "narrow-only"];
  return el("section", { class: whole ? "panel whole" : "panel" },
    el("h2", {}, title),
    note && el("p", { class: "note" }, note),
    drawings.map((text, i) =>
      el("div", { class: `drawing ${drawings.length > 1 ? names[i] : ""}`, tabindex: 0, role: "region", "aria-label": title }, svgOf(text))));
}

// The drawing, or nothing where the text is no SVG.
function svgOf(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  return parsed.documentElement.nodeName === "svg" ? document.importNode(parsed.documentElement, true) : null;
}
