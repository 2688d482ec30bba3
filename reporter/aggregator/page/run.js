// What is known of the run: its fields, its entries in the order of the plan, and what is new of them.

import { Entry } from "./entry.js";
import { count, label, number, STATES } from "./words.js";

export class Run {
  constructor(changed) {
    Object.assign(this, { changed, fields: null, entries: new Map(), tests: new Map() });
    this.forget();
  }

  /** Begin to note what is new. */
  forget() {
    this.news = { fields: false, entries: new Set(), order: false };
  }

  /** Whether every entry has been told. */
  get whole() {
    return this.entries.size >= this.fields.counts.entries;
  }

  /** Take the run with some of its entries: what is new, or the next page of all. */
  take({ plugins, next, reset, heard, ...fields }) {
    if (this.fields && this.fields.run !== fields.run) {
      this.entries.clear();
      this.tests.clear();
      this.news.order = true;
    }
    this.fields = fields;
    this.news.fields = true;
    for (const told of plugins) {
      let entry = this.entries.get(told.key);
      if (entry === undefined) {
        this.entries.set(told.key, (entry = new Entry(this.entries.size)));
        this.news.order = true;
      }
      this.#put(entry, told);
    }
    for (const [key, age] of Object.entries(heard ?? {})) this.entries.get(key)?.hear(age);
    this.changed();
  }

  /** Add to the tests of a plugin by outcome, or take away: going through all entries each time costs too much. */
  #count(plugin, counts, sign) {
    if (!counts) return;
    if (!this.tests.has(plugin)) this.tests.set(plugin, Object.create(null));
    const tests = this.tests.get(plugin);
    for (const [word, many] of Object.entries(counts)) tests[word] = (tests[word] ?? 0) + sign * many;
  }

  #put(entry, told) {
    this.#count(told.name, entry.told?.result_counts, -1);
    entry.take(told, STATES.indexOf(told.display.state));
    this.#count(told.name, told.result_counts, 1);
    this.news.entries.add(entry);
    this.news.fields = true;
  }
}

/** How many entries have which verdict. */
export function verdicts(entries) {
  const found = new Map();
  for (const { told: { result_status } } of entries) found.set(result_status, (found.get(result_status) ?? 0) + 1);
  return found;
}

/** How many entries are in which state, how many are waited for, and how many tests have failed. */
export function tally(entries) {
  const found = { ...Object.fromEntries(STATES.map((state) => [state, 0])), open: 0, failures: 0 };
  for (const entry of entries) {
    found[entry.told.display.state] += 1;
    found.open += entry.open;
    found.failures += entry.failures;
  }
  return found;
}

/** A tally in words. */
export function tallied(all) {
  const states = STATES.filter((state) => all[state]).map((state) => `${number.format(all[state])} ${label(state).toLowerCase()}`);
  return [...states, ...(all.failures ? [count(all.failures, "failed test")] : [])];
}
