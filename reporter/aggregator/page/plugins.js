// A card for each plugin.

import { $, bar, icon, make, mark, say, share, sign } from "./elements.js";
import { tallied, tally } from "./run.js";
import { count, number, STATES, tested } from "./words.js";

const cards = new Map();

/** Show the plugins of a run. */
export function showPlugins({ entries, tests }) {
  const groups = Map.groupBy(entries.values(), (entry) => entry.told.name);
  $("plugins-section").hidden = groups.size === 0;
  for (const [name, card] of cards) if (!groups.has(name)) { card.element.remove(); cards.delete(name); }
  for (const [name, group] of groups) {
    let card = cards.get(name);
    if (card === undefined) cards.set(name, (card = newCard(name)));
    const all = tally(group), [first] = group, measured = group.length === 1 && first.total > 0;
    const worst = STATES.find((state) => all[state]);
    mark(card.element, "kind", worst);
    sign(card.sign.firstChild, worst);
    const whole = measured ? first.total : group.length;
    const parts = measured ? { complete: first.done, failed: first.failures } : all;
    say(card.count, measured ? first.told.display.progress : `${number.format(whole - all.open)} of ${number.format(whole)}`);
    for (const part of card.bar.children) share(part, parts[part.dataset.kind] ?? 0, whole);
    say(card.note, [first.told.node ? count(group.length, "node") : "Cluster-wide", ...tallied(all)].join(" · "));
    say(card.tests, tested(tests.get(name)));
    card.tests.hidden = !card.tests.textContent;
  }
}

function newCard(name) {
  const card = {
    sign: icon("running"), count: make("span", { className: "count" }),
    bar: bar("complete", "failed", "timed_out", "check_failed", "unknown"), note: make("p", { className: "note" }),
    tests: make("p", { className: "note counts" }),
  };
  const title = make("h3", { textContent: name, title: name });
  card.element = make("li", { className: "card plugin" }, make("header", {}, card.sign, title, card.count), card.bar, card.note, card.tests);
  $("plugins").append(card.element);
  return card;
}
