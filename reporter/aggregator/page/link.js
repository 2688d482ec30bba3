// The connection to the aggregator: a request that waits for what is new, again and again.

const WAIT = 10, PAGE = 1000; // seconds; entries
const LEAST = 500, NOTHING = 5000, AGAIN = 3000, HANGS = 60_000; // milliseconds

export class Link {
  #asking = null; // ends what is under way
  #revision = 0; // up to which everything is known; 0: nothing is
  #over = false;

  /** `tell` gets a word for the state of the connection. */
  constructor(run, tell) {
    Object.assign(this, { run, tell });
  }

  connect() {
    this.disconnect();
    if (!this.run.fields) this.tell("connecting");
    this.#asking = new AbortController();
    this.#follow(this.#asking.signal);
  }

  /** Nobody looks at the page: it costs the aggregator nothing. */
  pause() {
    if (this.#over) return;
    this.disconnect();
    this.tell("paused");
  }

  resume() {
    if (!this.#over) this.connect();
  }

  disconnect() {
    this.#asking?.abort();
  }

  async #follow(signal) {
    for (let wait = 0; !signal.aborted;) {
      const known = this.#revision, began = performance.now();
      let pause = AGAIN;
      try {
        this.#over = !await this.#ask(wait, signal);
        this.tell(this.#over ? "over" : "live");
        if (this.#over) return;
        const took = performance.now() - began, refused = this.#revision === known && took < 500 * wait;
        pause = refused ? NOTHING : LEAST - took; // so many wait that this one may not
        wait = WAIT;
      } catch {
        if (signal.aborted) return;
        this.tell("lost");
        wait = 0;
      }
      await new Promise((go) => setTimeout(go, pause));
    }
  }

  /** Ask for what is new; false when there will be nothing any more. */
  async #ask(wait, signal) {
    const news = await get(`status?since=${this.#revision}&wait=${wait}`, signal);
    if (news === null) return false;
    if (!news.reset && news.run !== this.run.fields.run) { // a revision of another run
      this.#revision = 0;
      return true;
    }
    this.run.take(news);
    for (let { next } = news; next !== null;) {
      const page = await get(`status?limit=${PAGE}&after=${encodeURIComponent(next)}`, signal);
      if (page.run !== news.run) throw new Error("another run");
      this.run.take(page);
      ({ next } = page);
    }
    this.#revision = news.revision;
    return true;
  }
}

/** The document of an answer, null for one without. */
async function get(url, signal) {
  const answer = await fetch(url, { cache: "no-store", signal: AbortSignal.any([signal, AbortSignal.timeout(HANGS)]) });
  if (!answer.ok) throw new Error(String(answer.status));
  const found = answer.status === 204 ? null : await answer.json();
  signal.throwIfAborted();
  return found;
}
