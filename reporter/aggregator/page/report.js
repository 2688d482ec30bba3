// The tests of one entry that did not pass, with what they say. They are asked for when the entry is opened.

import { ask } from "./ask.js";
import { make, say } from "./elements.js";
import { outcomes } from "./words.js";

const KINDS = new Map([["failed", "check_failed"], ["timeout", "timed_out"]]);

/** Whether there is a result that did not pass. */
export const hasReport = ({ status, display }) => status === "complete" && display.state !== status;

export class Report {
  #ended = new AbortController();
  #shown = "";

  constructor() {
    this.note = make("p", { className: "note", role: "status" });
    this.list = make("ol", { className: "tests" });
    this.element = make("section", { className: "report", aria: { "aria-label": "Tests that did not pass" } }, this.note, this.list);
  }

  /** Show the tests of an entry, unless they are those that are shown. */
  async show(told) {
    const { key, digest, result_status, error } = told, shown = [key, digest, result_status, error?.text].join(" ");
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.end();
    this.#ended = new AbortController();
    const { signal } = this.#ended;
    if (!this.list.children.length) say(this.note, "Loading the tests…");
    const [plugin, node] = [told.name, told.node || "global"].map(encodeURIComponent);
    try {
      const { found, problem } = await ask(`results/${plugin}/${node}/report`, signal, (text) => say(this.note, text));
      signal.throwIfAborted();
      this.#put(found ?? { tests: [], unlisted: {} }, problem);
    } catch (failure) {
      if (!signal.aborted) throw failure;
    }
  }

  #put({ tests, unlisted, message = "" }, problem) {
    this.list.replaceChildren(...tests.map(item));
    const more = outcomes(unlisted);
    const words = more && (tests.length ? `Not listed here: ${more}. All are in the results.` : `The tests are not listed: ${more}. ${message}`);
    say(this.note, problem || words || (tests.length ? "" : "No test is listed."));
    this.note.hidden = !this.note.textContent;
    this.list.hidden = !tests.length;
  }

  end() {
    this.#ended.abort();
  }
}

function item({ path, name, status, text }) {
  const outcome = make("span", { className: "outcome", textContent: status });
  const title = make("p", { className: "test" }, outcome, make("b", { textContent: name || "(no name)" }));
  const above = path.length ? [make("p", { className: "path mono", textContent: path.join(" › ") })] : [];
  const long = text.length > 600 || text.split("\n").length > 8; // scrolled, by the keyboard as well
  return make("li", { data: { kind: KINDS.get(status) ?? "unknown" } }, title, ...above, ...(text ? [make("pre", { textContent: text, ...(long && { tabIndex: 0 }) })] : []));
}

