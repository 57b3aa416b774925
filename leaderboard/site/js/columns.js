// Columns of a track: which are shown, under which heads, and the range that their cells span.

function columnTitle(column) {
  if (column.n_shot === undefined) return column.label.split(":")[1] ?? column.label;
  return `${column.n_shot}-shot`;
}

// Kinds of columns in a track (linear, affine, probe, ...), to filter by.
function kindsOf(track) {
  return [...new Set(track.columns.map((column) => column.head).filter(Boolean))];
}

function datasetsOf(track) {
  return [...new Set(track.columns.map((column) => column.dataset).filter(Boolean))];
}

// Lists that entries declare, to filter by: data of pretraining, and targets that were in it.
const DECLARED = [["pretraining_data", "pretraining data"], ["targets_seen", "targets seen"]];

function declared(row, name) {
  const values = factsOf(row.name)[name] ?? [];
  return values.length ? values : ["none"];
}

function declaredBy(track, name) {
  return [...new Set(track.entries.flatMap((row) => declared(row, name)))].sort();
}

function shownColumns(track, { dataset, kind }) {
  return track.columns
    .map((column, index) => ({ ...column, index }))
    .filter((column) => (!dataset || column.dataset === dataset) && (!kind || column.head === kind));
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

// What the numbers of a column (-1: overall) are drawn by: the range of their intervals without
// outliers (Tukey's outer fences, as fsbench/core/plotting.py), and the sorted means.
function rangeOf(track, column) {
  const scores = track.entries.map((row) => scoreOf(row, column)).filter(Boolean);
  const means = scores.map((score) => score.mean).sort((a, b) => a - b);
  const ends = scores.flatMap((score) => [score.mean - (score.half ?? 0), score.mean + (score.half ?? 0)]);
  const inside = withoutOutliers(ends.sort((a, b) => a - b));
  return { low: inside[0], high: inside.at(-1), means };
}

function withoutOutliers(sorted) {
  if (sorted.length < 16) return sorted;
  const [low, high] = [0.25, 0.75].map((part) => sorted[Math.round(part * (sorted.length - 1))]);
  const room = 3 * (high - low);
  return room ? sorted.filter((value) => value >= low - room && value <= high + room) : sorted;
}

const STEPS = 9;

// The ninth of the column that a value lies in: by rank, so that no outlier flattens the others.
function step(value, { means }) {
  const below = means.findIndex((mean) => mean >= value);
  const part = means.length > 1 ? (below < 0 ? means.length : below) / (means.length - 1) : 0.5;
  return Math.min(Math.floor(part * STEPS), STEPS - 1);
}
