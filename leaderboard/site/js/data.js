// The board as embedded in the page; packed parts are inflated when first needed.

const board = JSON.parse(document.getElementById("data").textContent);

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const unpacking = new Map();

// unpack(track, "pairs") -> bytes of that part, inflated once.
function unpack(holder, part) {
  if (!unpacking.has(holder)) unpacking.set(holder, {});
  const parts = unpacking.get(holder);
  parts[part] ??= inflated(holder[part]);
  return parts[part];
}

async function unpackJson(holder, part) {
  return JSON.parse(new TextDecoder().decode(await unpack(holder, part)));
}

// Facts of an entry, or of one of its seeds.
function factsOf(name) {
  const facts = board.facts[name] ?? {};
  return { ...board.facts[facts.entry], ...facts };
}

const BINS = 25;

// Episodes by accuracy of row `r`, column `c`: 25 counts, all zero where there are no episodes.
function histogram(bytes, track, r, c) {
  const start = 2 * BINS * (r * track.columns.length + c);
  return Array.from({ length: BINS }, (_, i) => bytes[start + 2 * i] + 256 * bytes[start + 2 * i + 1]);
}
