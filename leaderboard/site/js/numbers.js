// Percent appears only here: data are fractions.

function percent(value, digits = 2) {
  return value === null || value === undefined ? "–" : (100 * value).toFixed(digits);
}

function signed(value, digits = 2) {
  const text = (100 * Math.abs(value)).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value < 0 ? "−" : "+") + text;
}

function plusMinus(value) {
  return value === null || value === undefined ? "" : ` ± ${percent(value)}`;
}

function shortNumber(value) {
  for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return `${Number((value / size).toPrecision(3))}${letter}`;
  }
  return String(value);
}

function plural(count, one, many) {
  return `${count} ${count === 1 ? one : many}`;
}

// Two-sided p of a z test: the complementary error function by Numerical Recipes' Chebyshev fit,
// relative error below 1.2e-7.
function twoSided(z) {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + x / 2);
  const fit = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
  ];
  const sum = fit.reduceRight((total, each) => total * t + each, 0);
  return t * Math.exp(-x * x + sum);
}

function shownP(p) {
  if (p < 0.001) return "p < 0.001";
  return `p = ${p.toFixed(p < 0.1 ? 3 : 2)}`;
}

// A tick without the rounding of its sum, e.g. 0.3 and not 0.30000000000000004.
function shortTick(tick) {
  return String(Number(tick.toPrecision(6))).replace("-", "−");
}

// About `wanted` round places in low..high.
function roundTicks(low, high, wanted = 5) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => (first + i) * step);
}
