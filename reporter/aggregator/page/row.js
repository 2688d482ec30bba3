// One entry as a row of the table, with its details once they are opened.

import { bar, facts, icon, make, mark, say, share, sign } from "./elements.js";
import { hasReport, Report } from "./report.js";
import { age, count, label, number, outcomes, size, sumOf, when } from "./words.js";

const LISTS = 5000; // between two requests for the whole lists of an entry

export class Row {
  constructor(entry) {
    Object.assign(this, { entry, more: null, report: null, lists: null, fetched: 0, asked: -LISTS, later: 0 });
    this.#build();
    this.show();
  }

  #build() {
    const { told } = this.entry;
    this.sign = icon(told.display.state);
    this.word = make("span");
    this.plugin = make("b");
    this.node = make("span", { className: "mono" });
    this.bar = bar("complete", "failed");
    this.steps = make("span");
    this.count = make("div", { className: "count" }, this.bar, this.steps);
    this.detail = make("div", { className: "text" });
    this.fails = make("td", { className: "fails number", role: "cell" });
    this.beat = make("td", { className: "beat number", role: "cell" });
    this.button = make("button", {
      className: "expand", type: "button",
      aria: { "aria-expanded": "false", "aria-label": `Details of ${told.key}` },
    }, icon("more"));
    this.button.addEventListener("click", () => this.toggle());
    this.element = make("tr", { className: "row", role: "row" },
      make("td", { className: "state", role: "cell" }, this.sign, this.word),
      make("td", { className: "who", role: "rowheader" }, this.plugin, this.node),
      make("td", { className: "work", role: "cell" }, this.count, this.detail),
      this.fails, this.beat,
      make("td", { className: "last", role: "cell" }, this.button));
  }

  show() {
    const { told, done, failures, total } = this.entry, { state, progress, detail } = told.display;
    mark(this.element, "kind", state);
    sign(this.sign.firstChild, state);
    say(this.word, label(state));
    say(this.plugin, told.name);
    say(this.node, told.node || "cluster-wide");
    const [good, bad] = this.bar.children, measured = total > 0;
    share(good, done, total);
    share(bad, Math.min(failures, total - done), total);
    const received = told.status === "complete" ? `Result received, ${size(told.bytes)}` : "";
    const tests = sumOf(told.result_counts) > 1 ? `, ${outcomes(told.result_counts)}` : "";
    say(this.steps, measured || !received ? progress : received + tests);
    this.bar.hidden = !measured;
    this.count.hidden = !this.steps.textContent;
    say(this.detail, detail);
    this.detail.hidden = !detail;
    say(this.fails, failures ? number.format(failures) : "–");
    this.fails.classList.toggle("some", failures > 0);
    this.fails.classList.toggle("none", failures === 0);
    this.showAge();
    if (this.more) this.showMore();
  }

  /** Ages grow by themselves; those of decided entries do not matter. */
  showAge() {
    const { open, heard } = this.entry;
    const text = !open ? "–" : heard === null ? "not yet" : age((performance.now() - heard) / 1000);
    say(this.beat, text);
    this.beat.classList.toggle("none", !open || heard === null);
  }

  toggle() {
    const open = !this.more;
    this.button.setAttribute("aria-expanded", String(open));
    this.element.classList.toggle("open", open);
    if (open) {
      this.facts = make("dl", { className: "facts" });
      this.more = make("td", { className: "more", role: "cell" }, this.facts);
      this.element.append(this.more);
      this.showMore();
    } else {
      this.more.remove();
      this.report?.end();
      clearTimeout(this.later);
      this.more = this.report = this.facts = this.lists = null;
      this.fetched = this.later = 0;
    }
  }

  showMore() {
    const { told } = this.entry, { progress, error } = told;
    const pairs = [];
    const add = (name, value) => { if (value !== null && value !== undefined && value !== "") pairs.push([name, String(value)]); };
    if (error) {
      add("Cause", label(error.cause));
      add("Worker's reason", error.reason);
      add("Error", error.text);
    } else {
      add("Reason", told.reason);
      add("Result", told.message);
    }
    add("Verdict", told.result_status);
    add("Tests", outcomes(told.result_counts));
    if (told.pod) {
      const { name, node, phase, reason, message, since, restarts } = told.pod;
      add("Pod", [name, node && `on ${node}`, phase].filter(Boolean).join(", "));
      add("Pod waits for", [reason, message].filter(Boolean).join(": "));
      if (reason && since) add("Since", when(since));
      if (restarts) add("Restarts", restarts);
    }
    if (progress) {
      add("Message", progress.msg);
      add("Last progress", when(progress.timestamp));
    }
    if (told.received_at) add("Received", when(told.received_at));
    if (told.bytes !== null) add("Size", size(told.bytes));
    if (told.digest) pairs.push(["SHA-256", make("span", { className: "mono", textContent: told.digest })]);
    if (told.late) add("Late", "The result arrived after the worker was given up on");
    if (told.attempts) add("Failed uploads", told.attempts);
    if (told.retry_until) add("May retry until", when(told.retry_until));
    if (told.notes) add("Notes", count(told.notes, "remark") + " from unpacking");
    if (!pairs.length) add("Nothing yet", "The worker has not reported anything.");
    for (const [name, list] of [["Failures", "failures"], ["Errors", "errors"]]) {
      const total = progress?.[`${list}_total`] ?? 0;
      const texts = this.lists?.[list] ?? progress?.[list] ?? [];
      if (!texts.length) continue;
      const items = texts.map((text) => make("li", {}, make("span", { textContent: text || "(no text)" })));
      pairs.push([total > texts.length ? `${name} (${texts.length} of ${number.format(total)})` : name, make("ol", {}, ...items)]);
      if (total > texts.length) this.fetchLists(total);
    }
    facts(this.facts, pairs);
    if (hasReport(told)) {
      if (!this.report) this.more.append((this.report = new Report()).element);
      this.report.show(told);
    }
  }

  /** The run lists the first 20 of each; the entry alone has all that are kept. */
  async fetchLists(total) {
    if (this.fetched === total || this.later) return;
    const wait = this.asked + LISTS - performance.now();
    if (wait > 0) { this.fetchLater(wait); return; }
    this.asked = performance.now();
    this.fetched = total; // no second request while this one is under way
    const { name, node } = this.entry.told;
    try {
      const answer = await fetch(`status/${encodeURIComponent(name)}/${encodeURIComponent(node || "global")}`);
      if (!answer.ok) throw new Error(String(answer.status));
      const { progress } = await answer.json();
      if (!this.more) return;
      this.lists = progress;
      this.showMore();
    } catch {
      // The first 20 stay meanwhile; nothing else may come that would make us ask again.
      if (this.more) { this.fetched = 0; this.fetchLater(LISTS); }
    }
  }

  fetchLater(wait) {
    clearTimeout(this.later);
    this.later = setTimeout(() => { this.later = 0; if (this.more) this.showMore(); }, wait);
  }
}
