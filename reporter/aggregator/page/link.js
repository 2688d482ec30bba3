// The connection to the aggregator: the stream of events, or polling where that fails.
// Entries of a large run are not in the stream from the start: they are read in pages.

const POLL = 5000, RECONNECT = 3000, PAGE = 1000;

export class Link {
  #source = null;
  #poll = 0;
  #retry = 0;
  #reading = null;
  #ended = false;
  #over = false;

  /** `tell` gets a word for the state of the connection. */
  constructor(run, tell) {
    Object.assign(this, { run, tell });
  }

  connect() {
    this.#closeStream();
    if (!this.run.fields) this.tell("connecting");
    const source = (this.#source = new EventSource("events"));
    const on = (name, act) => source.addEventListener(name, (event) => {
      if (this.#source === source) act(event.data === undefined ? null : JSON.parse(event.data));
    });
    on("open", () => { this.#stopPolling(); this.tell("live"); });
    on("snapshot", (document_) => this.run.takePlugins(document_));
    on("summary", (fields) => { this.run.takeFields(fields); this.#readLive(); });
    on("entry", (entry) => this.run.takeEntry(entry));
    on("run", (fields) => (fields.run === this.run.fields?.run ? this.run.takeFields(fields) : this.connect()));
    on("end", () => this.#end());
    on("error", () => this.#lost(source));
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
    this.#closeStream();
    this.#stopPolling();
    this.#stopReading();
  }

  /** The browser reconnects by itself when the network fails, but not after an answer like 503. */
  #lost(source) {
    if (this.#over) return;
    const closed = source.readyState === EventSource.CLOSED;
    if (!this.#poll) {
      this.tell("lost");
      this.#poll = setInterval(() => this.#ask(), POLL);
      if (closed) this.#ask();
    }
    if (closed) this.#connectLater();
  }

  async #ask() {
    if (this.#reading) return; // a large run may take longer than the time between two polls
    try {
      await this.#read();
      if (!this.#poll) return; // the stream was quicker
      if (this.run.fields.final) this.#finish(); else this.tell("polling");
    } catch {
      if (this.#poll) this.tell("lost");
    }
  }

  /** Read the entries beside the stream, which tells what changes meanwhile. */
  async #readLive() {
    this.#stopReading();
    try {
      await this.#read();
      if (this.#ended) this.#finish();
    } catch (error) {
      if (error.name !== "AbortError") this.#connectLater();
    }
  }

  async #read() {
    const reading = (this.#reading = new AbortController()), { signal } = reading;
    let page, after = "";
    try {
      do {
        this.run.told = new Map();
        const answer = await fetch(`status?limit=${PAGE}${after}`, { cache: "no-cache", signal });
        if (!answer.ok) throw new Error(String(answer.status));
        page = await answer.json();
        signal.throwIfAborted();
        if (after && page.run !== this.run.fields.run) throw new Error("another run");
        this.run.takePlugins(page);
        after = `&after=${encodeURIComponent(page.next)}`;
      } while (page.next !== null);
    } finally {
      if (this.#reading === reading) this.#reading = this.run.told = null;
    }
  }

  /** After the end nothing changes, but there may be something left to read. */
  #end() {
    this.#ended = true;
    if (this.#reading) this.#closeStream(); else this.#finish();
  }

  #finish() {
    this.#over = true;
    this.disconnect();
    this.tell("over");
  }

  #connectLater() {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.connect(), RECONNECT);
  }

  #stopReading() {
    this.#reading?.abort();
    this.#reading = this.run.told = null;
  }

  #stopPolling() {
    clearInterval(this.#poll);
    this.#poll = 0;
  }

  #closeStream() {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#source = null;
  }
}
