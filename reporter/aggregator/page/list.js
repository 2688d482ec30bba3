// The list of entries: which are wanted, in which order, and the rows of those that are shown.

import { $, icon, make, say } from "./elements.js";
import { Row } from "./row.js";
import { label, number, STATES } from "./words.js";

const SLICE = 150; // rows made in one frame
const STEP = 2000; // rows shown, and again for each click on the button below them

const ANY = "any"; // no verdict has this name

const names = new Intl.Collator("en", { numeric: true });
const COMPARE = {
  plan: (one, other) => one.index - other.index,
  status: (one, other) => one.rank - other.rank,
  key: (one, other) => names.compare(one.told.key, other.told.key),
  progress: (one, other) => one.share - other.share,
  failures: (one, other) => other.failures - one.failures,
  heartbeat: (one, other) => one.silent - other.silent,
};

/** The entries that are wanted, in order. */
export function chosen(entries, { only, verdict, text, sort, down }) {
  const wanted = [...entries].filter((entry) => (!only || entry.told.display.state === only)
    && (verdict === null || entry.told.result_status === verdict) && (!text || entry.words.includes(text)));
  const compare = COMPARE[sort], direction = down ? -1 : 1;
  return wanted.sort((one, other) => direction * compare(one, other) || one.index - other.index);
}

export class List {
  view = { only: "", verdict: null, text: "", sort: "status", down: false };
  #run;
  #rows = new Set(); // in the table, or on their way to it
  #chips = new Map();
  #most = STEP;
  #filling = 0;

  constructor(run) {
    this.#run = run;
    $("search").addEventListener("input", (event) => this.#look({ text: event.target.value.trim().toLowerCase() }));
    $("sort").addEventListener("change", (event) => this.#look({ down: false, sort: event.target.value }));
    $("verdict").addEventListener("change", ({ target }) => this.#look({ verdict: target.value === ANY ? null : target.value }));
    for (const button of document.querySelectorAll("th button")) {
      const { sort } = button.dataset;
      button.addEventListener("click", () => this.#look({ down: this.view.sort === sort && !this.view.down, sort }));
    }
    $("further").addEventListener("click", () => { this.#most += STEP; this.showOrder(); });
    setInterval(() => { if (!document.hidden) for (const row of this.#rows) row.showAge(); }, 1000);
  }

  #look(change) {
    Object.assign(this.view, change);
    this.#most = STEP;
    this.showOrder();
  }

  /** Show how many entries are in which state; a click shows only these. */
  showChips(all) {
    for (const kind of ["", ...STATES]) {
      const many = kind ? all[kind] : this.#run.entries.size;
      let chip = this.#chips.get(kind);
      if (chip === undefined) this.#chips.set(kind, (chip = this.#newChip(kind)));
      say(chip.total, number.format(many));
      chip.element.setAttribute("aria-pressed", String(this.view.only === kind));
      chip.element.hidden = kind !== "" && many === 0 && this.view.only !== kind;
    }
  }

  /** Offer the verdicts there are, with how many entries have each. */
  showVerdicts(found) {
    const words = new Set(found.keys());
    if (this.view.verdict !== null) words.add(this.view.verdict);
    const wanted = [ANY, ...[...words].sort()];
    const options = [...$("verdict").options];
    if (wanted.join("\n") !== options.map(({ value }) => value).join("\n")) { // else it stays: it may be open
      $("verdict").replaceChildren(...wanted.map((value) => make("option", { value })));
      $("verdict").value = this.view.verdict ?? ANY;
    }
    for (const option of $("verdict").options) {
      say(option, option.value === ANY ? "Any verdict" : `${option.value || "No verdict yet"} (${number.format(found.get(option.value) ?? 0)})`);
    }
  }

  #newChip(kind) {
    const total = make("b");
    const element = make("button", { className: "chip", type: "button", data: { kind } }, ...(kind ? [icon(kind)] : []), label(kind) || "All", total);
    element.addEventListener("click", () => {
      this.#look({ only: this.view.only === kind ? "" : kind });
      for (const [each, { element }] of this.#chips) element.setAttribute("aria-pressed", String(this.view.only === each));
    });
    $("chips").append(element);
    return { element, total };
  }

  /** Put the rows that are wanted in order; those far below come in later frames. */
  showOrder() {
    const { entries, whole } = this.#run, wanted = chosen(entries.values(), this.view);
    const shown = wanted.slice(0, this.#most), kept = new Set(shown.map((entry) => entry.row));
    for (const row of this.#rows) {
      if (kept.has(row)) continue;
      row.element.remove();
      this.#rows.delete(row);
      // A row that is not seen is made anew; one that is open stays so.
      if (!row.more || !entries.has(row.entry.told.key)) row.entry.row = null;
    }
    cancelAnimationFrame(this.#filling);
    this.#fill(shown, 0, $("rows").firstChild);
    if (shown.length && !performance.getEntriesByName("shown").length) performance.mark("shown");
    $("empty").hidden = wanted.length > 0;
    say($("empty"), entries.size ? "No results match the filter." : whole ? "This run has no expected results." : "Loading…");
    $("further").hidden = wanted.length === shown.length;
    say($("further"), `Showing ${number.format(shown.length)} of ${number.format(wanted.length)}. Show more`);
    for (const button of document.querySelectorAll("th button")) {
      const column = button.closest("th");
      if (button.dataset.sort === this.view.sort) column.setAttribute("aria-sort", this.view.down ? "descending" : "ascending");
      else column.removeAttribute("aria-sort");
    }
    $("sort").value = this.view.sort;
  }

  #fill(shown, start, next) {
    const body = $("rows"), focused = document.activeElement;
    let index = start;
    for (; index < shown.length && index < start + SLICE; index += 1) {
      const row = (shown[index].row ??= new Row(shown[index]));
      this.#rows.add(row);
      if (row.element === next) next = next.nextSibling;
      else body.insertBefore(row.element, next);
    }
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    if (index < shown.length) {
      this.#filling = requestAnimationFrame(() => this.#fill(shown, index, next?.parentNode === body ? next : null));
    }
  }
}
