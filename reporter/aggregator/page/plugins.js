// A card for each plugin.

import { $, bar, icon, make, mark, say, share, sign } from "./elements.js";
import { tally } from "./run.js";
import { count, number, ORDER, outcomes, sumOf, WORDS } from "./words.js";

const cards = new Map();

/** Show the plugins of a run; `tests` has the outcomes of their tests. */
export function showPlugins(entries, tests) {
  const groups = Map.groupBy(entries, (entry) => entry.told.name);
  $("plugins-section").hidden = groups.size === 0;
  for (const [name, card] of cards) if (!groups.has(name)) { card.element.remove(); cards.delete(name); }
  for (const [name, group] of groups) {
    let card = cards.get(name);
    if (card === undefined) cards.set(name, (card = newCard(name)));
    const all = tally(group), whole = group.length;
    const kind = ORDER.find((each) => all[each]) ?? "running";
    mark(card.element, "kind", kind);
    sign(card.sign.firstChild, kind);
    const single = whole === 1 && group[0].total > 0;
    const decided = single ? group[0].done + group[0].failures : whole - all.running - all.silent - all.retrying;
    say(card.count, `${number.format(decided)} of ${number.format(single ? group[0].total : whole)}`);
    const parts = single ? { complete: group[0].done, failed: group[0].failures } : all;
    for (const part of card.bar.children) share(part, parts[part.dataset.kind] ?? 0, single ? group[0].total : whole);
    const notes = [group[0].told.node ? count(whole, "node") : "Cluster-wide"];
    for (const each of ["failed", "timed_out", "check_failed", "unknown", "silent", "retrying"]) {
      if (all[each] && !single) notes.push(each === "check_failed" ? count(all[each], "failed check") : `${number.format(all[each])} ${WORDS[each].toLowerCase()}`);
    }
    if (all.failures) notes.push(count(all.failures, "failed test"));
    say(card.note, notes.join(" · "));
    const counts = tests.get(name), many = sumOf(counts);
    card.tests.hidden = !many;
    say(card.tests, many ? `${count(many, "test")}: ${outcomes(counts)}` : "");
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
