// The live page of one run. It keeps what /events tells, or /status where that fails, and shows it.
// Whatever comes from a worker is only ever put into text nodes.

const POLL = 5000, RECONNECT = 3000, SLICE = 150, LISTS = 5000;

const WORDS = {
  running: "Running", complete: "Complete", failed: "Failed", timed_out: "Timed out",
  check_failed: "Check failed", unknown: "Unknown",
  silent: "Silent", retrying: "Retrying", "post-processing": "Post-processing",
};
const CAUSES = {
  upload_failed: "Upload failed", worker_error: "Worker reported an error",
  start_failed: "Could not start", pod_failed: "Pod failed", lost: "Result lost",
  deadline: "Timed out", heartbeat: "No heartbeat", "": "Failed",
};
const LINKS = {
  connecting: "Connecting…", live: "Live", polling: "Polling every 5 s", lost: "Reconnecting…",
  paused: "Paused", over: "Run is over",
};
const ORDER = ["failed", "timed_out", "check_failed", "unknown", "silent", "retrying", "running", "complete"];
const VERDICTS = { failed: "check_failed", unknown: "unknown" };
const RANK = Object.fromEntries(ORDER.map((kind, index) => [kind, index]));

const $ = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const hours = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

// -- making elements ------------------------------------------------------------------------------

function make(tag, properties = {}, ...children) {
  const { data, aria, ...rest } = properties;
  const element = Object.assign(document.createElement(tag), rest);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria ?? {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  svg.append(document.createElementNS("http://www.w3.org/2000/svg", "use"));
  sign(svg.firstChild, name);
  return svg;
}

function sign(use, name) {
  const href = `#i-${name}`;
  if (use.getAttribute("href") !== href) use.setAttribute("href", href);
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function mark(element, name, value) {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}

function share(element, part, whole) {
  const value = whole > 0 ? Math.min(1, Math.max(0, part / whole)).toFixed(4) : "0";
  if (element.style.getPropertyValue("--share") === value) return;
  element.style.setProperty("--share", value);
  element.classList.toggle("some-of", part > 0);
}

function bar(...kinds) {
  const parts = kinds.map((kind) => make("span", { data: { kind } }));
  return make("span", { className: "bar", aria: { "aria-hidden": "true" } }, ...parts);
}

function facts(list, pairs) {
  list.replaceChildren(
    ...pairs.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", {}, value)]),
  );
}

// -- words ----------------------------------------------------------------------------------------

const count = (many, one, more = `${one}s`) => `${number.format(many)} ${many === 1 ? one : more}`;

function age(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  const whole = Math.floor(seconds / 3600);
  return whole < 48 ? `${whole} h ago` : `${Math.floor(whole / 24)} days ago`;
}

function size(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let unit = 0, value = bytes;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

function when(text, format = clock) {
  const date = new Date(text);
  return isNaN(date) ? text : format.format(date);
}

function kindOf(entry) {
  if (entry.status === "complete") return VERDICTS[entry.result_status] ?? "complete";
  if (entry.status !== "running") return entry.status in RANK ? entry.status : "failed";
  return entry.stale ? "silent" : entry.retry_until ? "retrying" : "running";
}

// -- what is known --------------------------------------------------------------------------------

let run = null;
const rows = new Map();
const view = { only: "", text: "", sort: "status", down: false };
const dirty = { run: false, rows: new Set(), order: false };
let drawing = 0;

function takeSnapshot({ plugins, ...fields }) {
  run = fields;
  const keys = new Set(plugins.map((entry) => entry.key));
  for (const [key, row] of rows) if (!keys.has(key)) { row.element.remove(); rows.delete(key); }
  plugins.forEach((entry, index) => takeEntry(entry, index));
  dirty.order = true;
}

function takeEntry(entry, index) {
  let row = rows.get(entry.key);
  if (row === undefined) {
    if (index === undefined) return;
    rows.set(entry.key, (row = new Row(index)));
  }
  row.take(entry);
  dirty.rows.add(row);
  dirty.run = true;
  draw();
}

function takeRun(fields) {
  run = fields;
  dirty.run = true;
  draw();
}

function draw() {
  drawing ||= requestAnimationFrame(() => { drawing = 0; redraw(); });
}

function redraw() {
  for (const row of dirty.rows) {
    const before = row.place;
    row.show();
    if (row.place !== before) dirty.order = true;
  }
  dirty.rows.clear();
  if (dirty.run && run) { dirty.run = false; showRun(); showPlugins(); showChips(); }
  if (dirty.order && run) { dirty.order = false; showOrder(); }
}

// -- one entry ------------------------------------------------------------------------------------

class Row {
  constructor(index) {
    Object.assign(this, { index, element: null, entry: null, place: "", lists: null, fetched: 0, asked: -LISTS, later: 0 });
  }

  take(entry) {
    this.entry = entry;
    this.kind = kindOf(entry);
    this.heard = entry["last-heartbeat"] === null ? null : performance.now() - entry["last-heartbeat"] * 1000;
    this.silent = entry.status === "running" ? this.heard ?? Infinity : Infinity; // a moment; oldest first
    const { progress, error } = entry;
    this.failures = progress ? Math.max(0, progress.failures_total) : 0;
    this.total = progress ? progress.total : 0;
    this.done = progress ? Math.max(0, progress.completed) : 0;
    this.share = entry.status === "complete" ? 1 : this.total > 0 ? (this.done + this.failures) / this.total : 0;
    this.words = [entry.key, progress?.msg, entry.reason, entry.message, error?.text, error?.reason, CAUSES[error?.cause]].join("\n").toLowerCase();
  }

  /** Build the elements when the row is first seen; `show` fills them. */
  build() {
    const { entry } = this;
    this.sign = icon(this.kind);
    this.word = make("span");
    this.plugin = make("b");
    this.node = make("span", { className: "mono" });
    this.bar = bar("complete", "failed");
    this.steps = make("span");
    this.count = make("div", { className: "count" }, this.bar, this.steps);
    this.cause = make("b");
    this.why = make("span");
    this.error = make("div", { className: "text bad" }, this.cause, this.why);
    this.message = make("div", { className: "text" });
    this.fails = make("td", { className: "fails number", role: "cell" });
    this.beat = make("td", { className: "beat number", role: "cell" });
    this.button = make("button", {
      className: "expand", type: "button",
      aria: { "aria-expanded": "false", "aria-label": `Details of ${entry.key}` },
    }, icon("more"));
    this.button.addEventListener("click", () => this.toggle());
    this.element = make("tr", { className: "row", role: "row" },
      make("td", { className: "state", role: "cell" }, this.sign, this.word),
      make("td", { className: "who", role: "rowheader" }, this.plugin, this.node),
      make("td", { className: "work", role: "cell" }, this.count, this.error, this.message),
      this.fails, this.beat,
      make("td", { className: "last", role: "cell" }, this.button));
  }

  /** What its place in the list depends on, of what an update can change. */
  placed() {
    const by = { progress: this.share, failures: this.failures }[view.sort] ?? "";
    return `${this.kind} ${by} ${this.words.includes(view.text)}`;
  }

  show() {
    const { entry, kind } = this, { progress, error } = entry;
    this.place = this.placed();
    if (this.element === null) return;
    mark(this.element, "kind", kind);
    sign(this.sign.firstChild, kind);
    say(this.word, WORDS[kind]);
    say(this.plugin, entry.name);
    say(this.node, entry.node || "cluster-wide");
    const measured = progress !== null && this.total > 0;
    this.count.hidden = !measured && entry.status !== "complete";
    this.bar.hidden = !measured;
    if (measured) {
      const [done, failed] = this.bar.children;
      share(done, this.done, this.total);
      share(failed, Math.min(this.failures, this.total - this.done), this.total);
      say(this.steps, `${number.format(this.done + this.failures)} of ${number.format(this.total)}`);
    } else {
      say(this.steps, entry.bytes === null ? "Result received" : `Result received, ${size(entry.bytes)}`);
    }
    const judged = Boolean(entry.reason || entry.message);
    this.error.hidden = error === null && !entry.retry_until && !judged;
    this.error.classList.toggle("bad", kind !== "complete");
    if (error !== null) {
      say(this.cause, (CAUSES[error.cause] ?? error.cause) + (error.reason ? ` (${error.reason})` : ""));
      say(this.why, error.text ? `: ${error.text}` : "");
    } else if (entry.retry_until) {
      say(this.cause, count(entry.attempts, "failed upload"));
      say(this.why, `, may be repeated until ${when(entry.retry_until, hours)}`);
    } else if (judged) {
      say(this.cause, entry.reason);
      say(this.why, entry.reason && entry.message ? `: ${entry.message}` : entry.message);
    }
    const said = progress && !error && !judged ? progress.msg : "";
    say(this.message, said || (entry.late ? "Arrived after the worker was given up on" : ""));
    this.message.hidden = !this.message.textContent;
    say(this.fails, this.failures ? number.format(this.failures) : "–");
    this.fails.classList.toggle("some", this.failures > 0);
    this.fails.classList.toggle("none", this.failures === 0);
    this.showAge();
    if (this.more) this.showMore();
  }

  /** Ages grow by themselves; those of decided entries interest nobody. */
  showAge() {
    if (this.element === null) return;
    const open = this.entry.status === "running";
    const text = !open ? "–" : this.heard === null ? "not yet" : age((performance.now() - this.heard) / 1000);
    say(this.beat, text);
    this.beat.classList.toggle("none", !open || this.heard === null);
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
      clearTimeout(this.later);
      this.more = this.facts = this.lists = null;
      this.fetched = this.later = 0;
    }
  }

  showMore() {
    const { entry } = this, { progress, error } = entry;
    const pairs = [];
    const add = (name, value) => { if (value !== null && value !== undefined && value !== "") pairs.push([name, String(value)]); };
    if (error) {
      add("Cause", CAUSES[error.cause] ?? error.cause);
      add("Worker's reason", error.reason);
      add("Error", error.text);
    } else {
      add("Reason", entry.reason);
      add("Result", entry.message);
    }
    add("Verdict", entry.result_status);
    if (entry.result_counts) {
      add("Tests", Object.entries(entry.result_counts).map(([word, many]) => `${many} ${word}`).join(", "));
    }
    if (progress) {
      add("Message", progress.msg);
      add("Last progress", when(progress.timestamp));
    }
    if (entry.received_at) add("Received", when(entry.received_at));
    if (entry.bytes !== null) add("Size", size(entry.bytes));
    if (entry.digest) pairs.push(["SHA-256", make("span", { className: "mono", textContent: entry.digest })]);
    if (entry.late) add("Late", "The result arrived after the worker was given up on");
    if (entry.attempts) add("Failed uploads", entry.attempts);
    if (entry.retry_until) add("May retry until", when(entry.retry_until));
    if (entry.notes) add("Notes", count(entry.notes, "remark") + " from unpacking");
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
  }

  /** The run lists the first 20 of each; the entry alone has all that are kept. */
  async fetchLists(total) {
    if (this.fetched === total || this.later) return;
    const wait = this.asked + LISTS - performance.now();
    if (wait > 0) { this.fetchLater(wait); return; }
    this.asked = performance.now();
    this.fetched = total; // no second request while this one is under way
    const { name, node } = this.entry;
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

// -- the run as a whole ---------------------------------------------------------------------------

function tally(list) {
  const found = { ...Object.fromEntries(ORDER.map((kind) => [kind, 0])), failures: 0 };
  for (const row of list) { found[row.kind] += 1; found.failures += row.failures; }
  return found;
}

/** What is said of the run first, and in which colour: a failed check is as red as a missing result. */
function headline(all, total) {
  const word = WORDS[run.status] ?? run.status;
  if (run.status === "failed") return { word, kind: "failed" };
  const of = number.format(total);
  if (all.check_failed) return { word: `${word}, ${number.format(all.check_failed)} of ${of} failed`, kind: "failed" };
  if (all.unknown) return { word: `${word}, ${number.format(all.unknown)} of ${of} unknown`, kind: "unknown" };
  return { word, kind: run.status };
}

function showRun() {
  const all = tally(rows.values()), total = rows.size;
  const { word, kind } = headline(all, total);
  const open = all.running + all.silent + all.retrying;
  mark($("hero"), "kind", kind);
  sign($("hero-icon"), kind in WORDS ? kind : "unknown");
  say($("hero-status"), run.status === "failed" && !run.final ? "Failed, still running" : word);
  const received = all.complete + all.check_failed + all.unknown;
  const parts = [`${number.format(received)} of ${count(total, "result")} received`];
  if (all.failed) parts.push(`${number.format(all.failed)} failed`);
  if (all.timed_out) parts.push(`${number.format(all.timed_out)} timed out`);
  if (all.check_failed) parts.push(count(all.check_failed, "failed check"));
  if (all.unknown) parts.push(`${number.format(all.unknown)} unknown`);
  if (all.silent) parts.push(`${number.format(all.silent)} silent`);
  if (open) parts.push(`${number.format(open)} open`);
  if (all.failures) parts.push(count(all.failures, "failed test"));
  say($("hero-sub"), parts.join(" · "));
  const percent = Math.floor(Math.round(run.percent_complete * 10000) / 100); // 0.29 * 100 is less than 29
  if ($("percent").dataset.value !== String(percent)) {
    $("percent").dataset.value = String(percent);
    $("percent").replaceChildren(String(percent), make("small", { textContent: "%" }));
  }
  const here = Math.floor(Math.round(run.plugins_reported * 10000) / 100);
  const meaning = `${percent} % of the expected results are decided: received or given up. ${here} % are received.`;
  for (const element of [$("percent"), $("bar")]) if (element.title !== meaning) element.title = meaning;
  $("bar").setAttribute("aria-valuenow", String(percent));
  for (const part of $("bar").children) share(part, all[part.dataset.kind], total);
  $("run-error").hidden = run.error === null;
  say($("run-error"), run.error === null ? "" : `The aggregator itself failed: ${run.error}`);
  const tar = run["tar-info"];
  if (tar && $("tar").dataset.digest !== tar.sha256) {
    $("tar").dataset.digest = tar.sha256;
    facts($("tar"), [["Results", make("a", { href: "results", download: tar.name, textContent: tar.name })], ["Size", size(tar.size)], ["SHA-256", make("span", { className: "mono", textContent: tar.sha256 })]]);
  }
  $("tar").hidden = !tar;
  say($("run-id"), run.run);
  say($("updated"), `As of ${when(run.time)}, revision ${number.format(run.revision)}`);
  const title = `${percent} % · ${word} · ${run.run}`;
  if (document.title !== title) document.title = title;
}

const cards = new Map();

function showPlugins() {
  const groups = Map.groupBy(rows.values(), (row) => row.entry.name);
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
    const notes = [group[0].entry.node ? count(whole, "node") : "Cluster-wide"];
    for (const each of ["failed", "timed_out", "check_failed", "unknown", "silent", "retrying"]) {
      if (all[each] && !single) notes.push(each === "check_failed" ? count(all[each], "failed check") : `${number.format(all[each])} ${WORDS[each].toLowerCase()}`);
    }
    if (all.failures) notes.push(count(all.failures, "failed test"));
    say(card.note, notes.join(" · "));
  }
}

function newCard(name) {
  const card = {
    sign: icon("running"), count: make("span", { className: "count" }),
    bar: bar("complete", "failed", "timed_out", "check_failed", "unknown"), note: make("p", { className: "note" }),
  };
  const title = make("h3", { textContent: name, title: name });
  card.element = make("li", { className: "card plugin" }, make("header", {}, card.sign, title, card.count), card.bar, card.note);
  $("plugins").append(card.element);
  return card;
}

const chips = new Map();

function showChips() {
  const all = tally(rows.values());
  for (const kind of ["", ...ORDER]) {
    const many = kind ? all[kind] : rows.size;
    let chip = chips.get(kind);
    if (chip === undefined) {
      const total = make("b");
      const element = make("button", { className: "chip", type: "button", data: { kind } }, ...(kind ? [icon(kind)] : []), kind ? WORDS[kind] : "All", total);
      element.addEventListener("click", () => { view.only = view.only === kind ? "" : kind; showChips(); showOrder(); });
      $("chips").append(element);
      chips.set(kind, (chip = { element, total }));
    }
    say(chip.total, number.format(many));
    chip.element.setAttribute("aria-pressed", String(view.only === kind));
    chip.element.hidden = kind !== "" && many === 0 && view.only !== kind;
  }
}

// -- order and filter -----------------------------------------------------------------------------

const COMPARE = {
  plan: (one, other) => one.index - other.index,
  status: (one, other) => RANK[one.kind] - RANK[other.kind],
  key: (one, other) => one.entry.key.localeCompare(other.entry.key, "en", { numeric: true }),
  progress: (one, other) => one.share - other.share,
  failures: (one, other) => other.failures - one.failures,
  heartbeat: (one, other) => one.silent - other.silent,
};

let filling = 0, first = true;

/** Put the rows that are wanted in order; those far below come in later frames. */
function showOrder() {
  const { text } = view;
  const wanted = [...rows.values()].filter(
    (row) => (!view.only || row.kind === view.only) && (!text || row.words.includes(text)),
  );
  const compare = COMPARE[view.sort], direction = view.down ? -1 : 1;
  wanted.sort((one, other) => direction * compare(one, other) || one.index - other.index);
  const shown = new Set(wanted);
  for (const row of rows.values()) if (row.element?.isConnected && !shown.has(row)) row.element.remove();
  cancelAnimationFrame(filling);
  fill(wanted, 0, $("rows").firstChild);
  if (first) requestAnimationFrame(() => performance.mark("shown"));
  first = false;
  $("empty").hidden = wanted.length > 0;
  say($("empty"), rows.size ? "No results match the filter." : "This run has no expected results.");
  for (const button of document.querySelectorAll("th button")) {
    const column = button.closest("th");
    if (button.dataset.sort === view.sort) column.setAttribute("aria-sort", view.down ? "descending" : "ascending");
    else column.removeAttribute("aria-sort");
  }
  $("sort").value = view.sort;
}

function fill(wanted, start, next) {
  const body = $("rows"), focused = document.activeElement;
  let index = start;
  for (; index < wanted.length && index < start + SLICE; index += 1) {
    const row = wanted[index];
    if (row.element === null) { row.build(); row.show(); }
    if (row.element === next) next = next.nextSibling;
    else body.insertBefore(row.element, next);
  }
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  if (index < wanted.length) filling = requestAnimationFrame(() => fill(wanted, index, next?.parentNode === body ? next : null));
}

function sortBy(name) {
  view.down = view.sort === name && !view.down;
  view.sort = name;
  showOrder();
}

// -- the connection -------------------------------------------------------------------------------

const link = { source: null, poll: 0, retry: 0, over: false };

function tell(state) {
  if ($("link").dataset.link === state && $("link-text").textContent === LINKS[state]) return;
  $("link").dataset.link = state;
  say($("link-text"), LINKS[state]);
}

function connect() {
  closeStream();
  if (!run) tell("connecting");
  const source = (link.source = new EventSource("events"));
  const on = (name, act) => source.addEventListener(name, (event) => { if (link.source === source) act(JSON.parse(event.data)); });
  source.addEventListener("open", () => { if (link.source === source) { stopPolling(); tell("live"); } });
  on("snapshot", takeSnapshot);
  on("summary", async () => takeSnapshot(await (await fetch("status")).json()));
  on("entry", (entry) => takeEntry(entry));
  on("run", (fields) => (fields.run === run?.run ? takeRun(fields) : connect()));
  on("end", () => finish());
  source.addEventListener("error", () => { if (link.source === source) lost(source); });
}

/** The browser reconnects by itself when the network fails, but not after an answer like 503. */
function lost(source) {
  if (link.over) return;
  if (!link.poll) {
    tell("lost");
    link.poll = setInterval(poll, POLL);
    if (source.readyState === EventSource.CLOSED) poll();
  }
  if (source.readyState === EventSource.CLOSED) {
    clearTimeout(link.retry);
    link.retry = setTimeout(connect, RECONNECT);
  }
}

async function poll() {
  try {
    const answer = await fetch("status", { cache: "no-cache" });
    if (!answer.ok) throw new Error(String(answer.status));
    const document_ = await answer.json();
    if (!link.poll) return; // the stream was quicker
    takeSnapshot(document_);
    if (document_.final) finish(); else tell("polling");
  } catch {
    if (link.poll) tell("lost");
  }
}

function stopPolling() {
  clearInterval(link.poll);
  link.poll = 0;
}

function closeStream() {
  clearTimeout(link.retry);
  link.source?.close();
  link.source = null;
}

function disconnect() {
  closeStream();
  stopPolling();
}

function finish() {
  link.over = true;
  disconnect();
  tell("over");
}

// A page that nobody looks at costs the aggregator nothing.
document.addEventListener("visibilitychange", () => {
  if (link.over) return;
  if (document.hidden) { disconnect(); tell("paused"); } else connect();
});
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => { if (event.persisted && !link.over) connect(); });

setInterval(() => { if (!document.hidden) for (const row of rows.values()) row.showAge(); }, 1000);

// -- what people do -------------------------------------------------------------------------------

const THEMES = { auto: "system", light: "light", dark: "dark" };

function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  sign($("theme").querySelector("use"), name);
  say($("theme-text"), `Theme: ${THEMES[name]}`);
  $("theme").title = `Theme: ${THEMES[name]}`;
  try { localStorage.setItem("theme", name); } catch { /* it is forgotten, then */ }
}

function savedTheme() {
  try { return localStorage.getItem("theme"); } catch { return null; }
}

let chosen = savedTheme() in THEMES ? savedTheme() : "auto";
theme(chosen);
$("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  theme((chosen = names[(names.indexOf(chosen) + 1) % names.length]));
});
$("search").addEventListener("input", (event) => { view.text = event.target.value.trim().toLowerCase(); showOrder(); });
$("sort").addEventListener("change", (event) => { view.down = false; view.sort = event.target.value; showOrder(); });
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sortBy(button.dataset.sort));
}
addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    $("search").focus();
  }
});

if (!document.hidden) connect();
