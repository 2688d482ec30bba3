// Light, dark, or as the system has it; kept in the browser.

import { $, say, sign } from "./elements.js";

const THEMES = { auto: "system", light: "light", dark: "dark" };

function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  sign($("theme").querySelector("use"), name);
  say($("theme-text"), `Theme: ${THEMES[name]}`);
  $("theme").title = `Theme: ${THEMES[name]}`;
  try { localStorage.setItem("theme", name); } catch { /* it is forgotten, then */ }
}

function savedTheme() {
  try { return localStorage.getItem("theme"); } catch { return null; }
}

let chosen = savedTheme() in THEMES ? savedTheme() : "auto";
theme(chosen);
$("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  theme((chosen = names[(names.indexOf(chosen) + 1) % names.length]));
});
