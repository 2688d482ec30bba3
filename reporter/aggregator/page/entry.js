// One entry as it was last told, and what follows from that. Nothing here is seen.

import { CAUSES, kindOf } from "./words.js";

export class Entry {
  constructor(index) {
    Object.assign(this, { index, row: null });
  }

  take(told) {
    this.told = told;
    this.kind = kindOf(told);
    this.verdict = told.result_status;
    this.hear(told["last-heartbeat"]);
    const { progress, error } = told;
    this.failures = progress ? Math.max(0, progress.failures_total) : 0;
    this.total = progress ? progress.total : 0;
    this.done = progress ? Math.max(0, progress.completed) : 0;
    this.share = told.status === "complete" ? 1 : this.total > 0 ? (this.done + this.failures) / this.total : 0;
    this.words = [told.key, progress?.msg, told.reason, told.message, error?.text, error?.reason, CAUSES[error?.cause]].join("\n").toLowerCase();
  }

  /** Note how many seconds ago its worker was heard, null if never. */
  hear(age) {
    this.heard = age === null ? null : performance.now() - age * 1000;
    this.silent = this.told.status === "running" ? this.heard ?? Infinity : Infinity; // a moment; oldest first
  }

  /** What its place in a list depends on, of what an update can change. */
  placed({ sort, text }) {
    const by = { progress: this.share, failures: this.failures }[sort] ?? "";
    return `${this.kind} ${this.verdict} ${by} ${this.words.includes(text)}`;
  }
}
