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

// A link only to the web: a declared `javascript:` stays text.
function link(address) {
  if (!/^https?:\/\//i.test(address)) return el("span", {}, address);
  return el("a", { href: address, rel: "noopener noreferrer nofollow" }, address);
}

function announce(text) {
  document.getElementById("status").textContent = text;
}
