// Figures made when the site was built: pictures, which run nothing and style nothing else.

function panelsSection(track) {
  if (!track.panels) return null;
  const section = el("section", { id: "panels" });
  unpackJson(track, "panels").then((panels) => section.append(...panels.map(panelFigure)));
  return section;
}

function panelFigure({ title, note, whole, svg }) {
  const address = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  return el("section", { class: whole ? "panel whole" : "panel" },
    el("h2", {}, title),
    note && el("p", { class: "note" }, note),
    el("div", { class: "drawing", tabindex: 0, role: "region", "aria-label": title },
      el("img", { src: address, alt: `${title}. ${note}` })));
}
