// Columns of a track: which are shown, under which heads, and the range that their cells span.

function columnTitle(column) {
  if (column.shots === undefined) return column.label.split(":")[1] ?? column.label;
  return `${column.shots}-shot`;
}

// Kinds of columns in a track (linear, affine, probe, ...), to filter by.
function kindsOf(track) {
  return [...new Set(track.columns.map((column) => column.kind).filter(Boolean))];
}

function datasetsOf(track) {
  return [...new Set(track.columns.map((column) => column.dataset).filter(Boolean))];
}

function shownColumns(track, { dataset, kind }) {
  return track.columns
    .map((column, index) => ({ ...column, index }))
    .filter((column) => (!dataset || column.dataset === dataset) && (!kind || column.kind === kind));
}

// Runs of neighbours with one data set: [{ dataset, columns }].
function grouped(columns) {
  const groups = [];
  for (const column of columns) {
    const dataset = column.dataset ?? column.label;
    if (groups.at(-1)?.dataset !== dataset) groups.push({ dataset, columns: [] });
    groups.at(-1).columns.push(column);
  }
  return groups;
}

// Lowest and highest end of an interval in a column (-1: overall), for bars; of means, for colours.
function rangeOf(track, column) {
  const scores = track.rows.map((row) => scoreOf(row, column)).filter(Boolean);
  const means = scores.map((score) => score.mean);
  return {
    low: Math.min(...scores.map((score) => score.mean - (score.half ?? 0))),
    high: Math.max(...scores.map((score) => score.mean + (score.half ?? 0))),
    worst: Math.min(...means),
    best: Math.max(...means),
  };
}

const STEPS = 9;

function step(value, range) {
  const spread = range.best - range.worst;
  const part = spread > 0 ? (value - range.worst) / spread : 0.5;
  return Math.min(Math.floor(part * STEPS), STEPS - 1);
}
