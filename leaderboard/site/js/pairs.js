// Paired comparison of two rows of a track (leaderboard/site/packing.py says what a code means).

const Z95 = 1.96;
const LEAST = 1e-6;
const STEP = 0.01;
const UNKNOWN = 0xffff;

function halfOf(code) {
  if (code === UNKNOWN) return null;
  return code === 0 ? 0 : LEAST * Math.exp(STEP * (code - 1));
}

// Half-width of the paired interval; block 0 is overall, then the columns.
function pairedHalf(bytes, track, a, b, block) {
  const [low, high] = [a, b].map((row) => track.entries.indexOf(row)).sort((i, j) => i - j);
  if (low < 0 || high >= track.paired) return null;
  const place = (block * track.paired * (track.paired - 1)) / 2 + (high * (high - 1)) / 2 + low;
  return halfOf(bytes[place] + 256 * bytes[bytes.length / 2 + place]);
}

// Gap of row A over row B in a column (or overall, column -1), with its 95 % half-width; `paired`
// tells whether the page pairs their episodes, else samples count as independent: seeds of a row.
function gapOf(bytes, track, a, b, column) {
  const [x, y] = [a, b].map((row) => scoreOf(row, column));
  if (!x || !y) return null;
  const gap = x.mean - y.mean;
  const stored = pairedHalf(bytes, track, a, b, column + 1);
  const paired = stored !== null;
  if (!paired && (x.half === null || y.half === null)) return { gap, half: null, p: null, paired };
  const half = paired ? stored : Math.hypot(x.half, y.half);
  const p = half === 0 ? Number(gap === 0) : twoSided((gap / half) * Z95);
  return { gap, half, p, paired };
}

function scoreOf(row, column) {
  if (column < 0) {
    return row.overall === undefined ? null : { mean: row.overall, half: row.overall_ci95 ?? null };
  }
  return row.mean[column] === null ? null : { mean: row.mean[column], half: row.ci95[column], n: row.n[column] };
}

function standsOut(found) {
  return found.half !== null && Math.abs(found.gap) > found.half;
}
