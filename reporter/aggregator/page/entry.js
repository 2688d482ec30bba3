// One entry as it was last told, and what follows from that. Nothing here is seen.

export class Entry {
  constructor(index) {
    Object.assign(this, { index, row: null });
  }

  /** `rank` is how much its state needs attention, 0 first. */
  take(told, rank) {
    Object.assign(this, { told, rank });
    this.hear(told["last-heartbeat"]);
    const { progress } = told;
    this.failures = Math.max(0, progress?.failures_total ?? 0);
    this.total = progress?.total ?? 0;
    this.done = Math.max(0, progress?.completed ?? 0);
    this.share = told.status === "complete" ? 1 : this.total > 0 ? (this.done + this.failures) / this.total : 0;
    this.words = `${told.key}\n${told.display.detail}`.toLowerCase();
  }

  /** Whether it is waited for. */
  get open() {
    return this.told.status === "running";
  }

  /** Note how many seconds ago its worker was heard, null if never. */
  hear(age) {
    this.heard = age === null ? null : performance.now() - age * 1000;
    this.silent = this.open ? this.heard ?? Infinity : Infinity; // a moment; oldest first
  }

  /** What its place in a list depends on, of what an update can change. */
  placed({ sort, text }) {
    const by = { progress: this.share, failures: this.failures }[sort] ?? "";
    return `${this.rank} ${this.told.result_status} ${by} ${this.words.includes(text)}`;
  }
}
