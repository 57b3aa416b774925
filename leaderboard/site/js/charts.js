// Drawings of chosen entries: histogram of episodes, gaps with intervals, accuracy by shots.

function drawing(width, height, label) {
  return draw("svg", {
    class: "drawn", role: "img", "aria-label": label, width, height,
    viewBox: `0 0 ${width} ${height}`,
  });
}

function drawHistogram(counts, mean, chance, label) {
  const [width, height, floor] = [260, 92, 72];
  const top = Math.max(...counts);
  const x = (value) => 4 + value * (width - 8);
  const svg = drawing(width, height, label);
  svg.append(draw("line", { class: "axis", x1: x(0), x2: x(1), y1: floor, y2: floor }));
  counts.forEach((count, i) => {
    if (!count) return;
    const tall = Math.max((count / top) * (floor - 8), 1);
    svg.append(draw("rect", {
      class: "bar", x: x(i / BINS) + 0.5, width: (width - 8) / BINS - 1, y: floor - tall, height: tall,
    }, draw("title", {}, `${(100 * i) / BINS} to ${(100 * (i + 1)) / BINS} %: ${count} episodes`)));
  });
  for (const [value, kind] of [[chance, "chance"], [mean, "mean"]]) {
    if (value === undefined || value === null) continue;
    svg.append(draw("line", { class: kind, x1: x(value), x2: x(value), y1: 4, y2: floor }));
  }
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    const anchor = value === 0 ? "start" : value === 1 ? "end" : "middle";
    svg.append(draw("text", { x: x(value), y: height - 5, "text-anchor": anchor }, String(100 * value)));
  }
  return svg;
}

// rows: [{ label, gap, half }]; right of the line A is ahead.
function drawGaps(rows, label, width) {
  const [line, top, left, right] = [26, 8, width < 500 ? 116 : 170, width - 60];
  const most = Math.floor((left - 14) / 6.4);
  const bottom = top + line * rows.length;
  const low = Math.min(...rows.map((row) => row.gap - (row.half ?? 0)), -0.002);
  const high = Math.max(...rows.map((row) => row.gap + (row.half ?? 0)), 0.002);
  const x = (value) => left + ((value - low) / (high - low)) * (right - left);
  const svg = drawing(width, bottom + 30, label);
  for (const tick of roundTicks(100 * low, 100 * high, width < 500 ? 4 : 6)) {
    const at = x(tick / 100);
    svg.append(
      draw("line", { class: tick === 0 ? "axis" : "grid", x1: at, x2: at, y1: top, y2: bottom }),
      draw("text", { x: at, y: bottom + 18, "text-anchor": "middle" }, shortTick(tick)),
    );
  }
  rows.forEach((row, i) => {
    const y = top + line * (i + 0.5);
    const side = !standsOut(row) ? "even" : row.gap > 0 ? "plus" : "minus";
    const text = row.label.length > most ? `${row.label.slice(0, most - 1)}…` : row.label;
    svg.append(draw("g", { class: side },
      draw("title", {}, `${row.label}: ${signed(row.gap)}${plusMinus(row.half)}`),
      row.half === null ? null
        : draw("line", { class: "stroke", x1: x(row.gap - row.half), x2: x(row.gap + row.half), y1: y, y2: y }),
      draw("circle", { class: "fill", cx: x(row.gap), cy: y, r: 4 })),
    draw("text", { class: "label", x: left - 14, y: y + 4, "text-anchor": "end" }, text),
    draw("text", { class: "label", x: width, y: y + 4, "text-anchor": "end" }, signed(row.gap)));
  });
  return svg;
}

// series: [{ name, points: [{ shots, mean, half }] }], in the colours c0, c1, ...
function drawShots(series, label) {
  const [width, height, left, bottom] = [320, 210, 34, 180];
  const points = series.flatMap((each) => each.points);
  const low = Math.min(...points.map((p) => p.mean - (p.half ?? 0))) - 0.01;
  const high = Math.max(...points.map((p) => p.mean + (p.half ?? 0))) + 0.01;
  const shots = [...new Set(points.map((p) => p.shots))].sort((a, b) => a - b);
  const spread = Math.max(Math.log(shots.at(-1) / shots[0]), 0.01);
  const x = (k) => left + 12 + (Math.log(k / shots[0]) / spread) * (width - left - 24);
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - 10);
  const svg = drawing(width, height, label);
  for (const tick of roundTicks(100 * low, 100 * high, 4)) {
    svg.append(
      draw("line", { class: "grid", x1: left, x2: width, y1: y(tick / 100), y2: y(tick / 100) }),
      draw("text", { x: left - 6, y: y(tick / 100) + 4, "text-anchor": "end" }, shortTick(tick)),
    );
  }
  for (const k of shots) {
    svg.append(draw("text", { x: x(k), y: bottom + 18, "text-anchor": "middle" }, String(k)));
  }
  series.forEach(({ name, points: own }, i) => {
    const at = (value) => own.map((p) => [x(p.shots), y(value(p))]);
    const band = [...at((p) => p.mean + (p.half ?? 0)), ...at((p) => p.mean - (p.half ?? 0)).reverse()];
    svg.append(draw("g", { class: `c${i % 8}` },
      draw("title", {}, name),
      draw("polygon", { class: "band", points: band.join(" ") }),
      draw("polyline", { class: "stroke", points: at((p) => p.mean).join(" ") }),
      at((p) => p.mean).map(([cx, cy]) => draw("circle", { class: "fill", cx, cy, r: 3.5 }))));
  });
  return svg;
}
