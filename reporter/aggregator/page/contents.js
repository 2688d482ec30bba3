// What the results of a plugin hold: facts that differ between nodes, what a snapshot of the cluster has.

import { ask } from "./ask.js";
import { facts, make, say, table } from "./elements.js";
import { count, number, size, when } from "./words.js";

const OFFERS = {
  "host-facts": { title: "Facts that differ", where: (plugin) => `facts/${plugin}/differences`, fill: differences },
  "cluster-snapshot": { title: "What it holds", where: (plugin) => `results/${plugin}/global/snapshot`, fill: snapshot },
};

/** A button that opens what a plugin's results hold, and the place for it; nothing for most plugins. */
export class Contents {
  static of(plugin, card) {
    return Object.hasOwn(OFFERS, plugin) ? new Contents(plugin, card) : null;
  }

  #ended = null;

  constructor(plugin, card) {
    Object.assign(this, { plugin, card, offer: OFFERS[plugin] });
    this.button = make("button", {
      className: "opener", type: "button", textContent: this.offer.title, aria: { "aria-expanded": "false" },
    });
    this.button.addEventListener("click", () => this.#toggle());
    this.note = make("p", { className: "note", role: "status" });
    this.place = make("div", { className: "contents", hidden: true });
    card.append(this.button, this.place);
  }

  #toggle() {
    const open = this.place.hidden;
    this.place.hidden = !open;
    this.card.classList.toggle("open", open);
    this.button.setAttribute("aria-expanded", String(open));
    this.#ended?.abort();
    if (open) this.#load();
  }

  /** Each time it is opened: more results may have come. */
  async #load() {
    const { signal } = (this.#ended = new AbortController());
    const tell = (text) => { say(this.note, text); this.place.replaceChildren(this.note); };
    tell("Loading…");
    try {
      const { found, problem } = await ask(this.offer.where(encodeURIComponent(this.plugin)), signal, tell);
      signal.throwIfAborted();
      if (found === null) tell(problem); else this.place.replaceChildren(...this.offer.fill(found));
    } catch (failure) {
      if (!signal.aborted) throw failure;
    }
  }
}

/** Facts with the value that most nodes have, and who has another one. */
export function differences(found) {
  const parts = [], total = found.nodes;
  const many = found.differences.length + found.more_differences;
  const same = total === 1 ? "There are facts of one node only." : `The facts of ${count(total, "node")} are the same.`;
  parts.push(paragraph(many ? `${count(many, "fact differs", "facts differ")} between ${count(total, "node")}.` : same));
  const without = [...found.without, ...(found.more_without ? [`${number.format(found.more_without)} more`] : [])];
  if (without.length) parts.push(paragraph(`No facts of ${without.join(", ")}.`));
  if (found.unread) parts.push(paragraph(`${count(found.unread, "node")} left out: comparing all would take too long.`));
  if (!found.complete && !found.unread && !found.more_differences) parts.push(paragraph("Some facts have too many values to be compared."));
  if (many) {
    parts.push(table("facts-table", ["Fact", "On most nodes", "Different"], found.differences.map((each) => [
      each.fact,
      each.majority === null ? "–" : `${each.majority} (${number.format(each.values[0].count)} of ${number.format(total)})`,
      others(each),
    ])));
  }
  if (found.more_differences) parts.push(paragraph(`${count(found.more_differences, "more fact")}: see status-ctl facts --diff.`));
  return parts;
}

function others({ values, majority, more_values }) {
  const said = values.slice(majority === null ? 0 : 1).map(({ value, count: many, nodes }) => {
    const more = many > nodes.length ? [`${number.format(many - nodes.length)} more`] : [];
    return `${value}: ${[...nodes, ...more].join(", ")}`;
  });
  if (more_values) said.push(count(more_values, "more value"));
  return said.join("\n");
}

/** What is in a snapshot, and first what is missing. */
export function snapshot(found) {
  const list = make("dl", { className: "facts" }), pairs = [];
  const add = (name, value) => { if (value) pairs.push([name, value]); };
  add("Complete", found.complete ? "yes" : `no${found.problem ? `: ${found.problem}` : ""}`);
  add("Server version", found.server_version);
  if (found.started_at) add("Taken", when(found.started_at));
  if (found.namespaces) add("Namespaces", found.namespaces.join(", ") || "none");
  add("Objects", number.format(found.totals.count));
  add("Size", size(found.totals.bytes));
  add("Redacted values", number.format(found.totals.redacted));
  facts(list, pairs);
  const rows = [...found.resources, ...found.parts];
  const parts = [list];
  for (const { group, version, error } of found.group_errors) parts.push(paragraph(`API group ${group}/${version} did not answer: ${error}`));
  if (found.more_group_errors) parts.push(paragraph(`${count(found.more_group_errors, "more API group")} did not answer.`));
  if (rows.length) {
    parts.push(table("snapshot-table", ["Resource", "Objects", "Size", "Redacted", "Remarks"], rows.map((each) => [
      [each.name, each.version].filter(Boolean).join(" "), number.format(each.count), size(each.bytes), number.format(each.redacted), remarks(each),
    ])));
  }
  if (found.more_resources) parts.push(paragraph(`${count(found.more_resources, "more resource")} not listed here.`));
  if (found.left_out.length) {
    const said = found.left_out.map(({ name, reason }) => `${name} (${reason})`);
    if (found.more_left_out) said.push(`${number.format(found.more_left_out)} more`);
    parts.push(paragraph(`Not collected: ${said.join(", ")}.`));
  }
  return parts;
}

const remarks = ({ truncated, inconsistent, error }) =>
  [truncated && `truncated: ${truncated}`, inconsistent && "changed while it was read", error].filter(Boolean).join("; ");

const paragraph = (text) => make("p", { textContent: text });
