// Elements, never pasted strings: text from a board is only ever text.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

// el("td", { class: "cell" }, "57.75"); `on...` are listeners, `--...` are variables of the style.
function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

const PLACES = [
  ["paper", /arxiv|doi\.org|openreview|proceedings|openaccess|\.pdf$/i],
  ["code", /git|huggingface|codeberg/i],
];

// A link only to the web: a declared `javascript:` stays text. short: "paper", "code" or "link".
function link(address, short = false) {
  if (!/^https?:\/\//i.test(address)) return short ? null : el("span", {}, address);
  const kind = PLACES.find(([, pattern]) => pattern.test(address))?.[0] ?? "link";
  return el("a", { href: address, rel: "noopener noreferrer nofollow" }, short ? kind : address);
}

// What a declaration states as code or paper, which may be several addresses.
function shortLinks(text) {
  const links = (text ?? "").split(/[\s,;]+/).map((address) => link(address, true)).filter(Boolean);
  return links.length ? el("span", { class: "links" }, links) : null;
}

// A name that may wrap after its separators.
function breakable(name) {
  return name.split(/(?<=[_=,/])/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));
}

function announce(text) {
  document.getElementById("status").textContent = text;
}
