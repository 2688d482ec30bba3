// Making elements, and changing them only where something differs. Texts only ever become text nodes.

export const $ = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const { data, aria, ...rest } = properties;
  const element = Object.assign(document.createElement(tag), rest);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria ?? {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  svg.append(document.createElementNS("http://www.w3.org/2000/svg", "use"));
  sign(svg.firstChild, name);
  return svg;
}

export function sign(use, name) {
  const href = `#i-${name}`;
  if (use.getAttribute("href") !== href) use.setAttribute("href", href);
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function mark(element, name, value) {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}

export function share(element, part, whole) {
  const value = whole > 0 ? Math.min(1, Math.max(0, part / whole)).toFixed(4) : "0";
  if (element.style.getPropertyValue("--share") === value) return;
  element.style.setProperty("--share", value);
  element.classList.toggle("some-of", part > 0);
}

export function bar(...kinds) {
  const parts = kinds.map((kind) => make("span", { data: { kind } }));
  return make("span", { className: "bar", aria: { "aria-hidden": "true" } }, ...parts);
}

export function facts(list, pairs) {
  list.replaceChildren(
    ...pairs.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", {}, value)]),
  );
}
