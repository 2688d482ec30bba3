// The run as a whole, at the top of the page.

import { $, facts, make, mark, say, share, sign } from "./elements.js";
import { count, hours, number, outcomes, percent, size, sumOf, UPLOADS, when, WORDS } from "./words.js";

/** What is said of the run first, and in which colour: a failed check is as red as a missing result. */
export function headline({ status, counts, final }) {
  const word = WORDS[status] ?? status, of = number.format(counts.entries);
  if (status === "failed") return { word, kind: "failed" };
  if (counts.failed) return { word: `${word}, ${number.format(counts.failed)} of ${of} failed`, kind: "failed" };
  if (counts.unknown) return { word: `${word}, ${number.format(counts.unknown)} of ${of} unknown`, kind: "unknown" };
  if (final && !counts.entries) return { word: `${word}, no results expected`, kind: "unknown" };
  return { word, kind: status };
}

/** What is done after the last decision. */
function ending({ status, counts, final, launcher, upload, "tar-info": tar }) {
  if (final) return launcher?.step === "removing" ? "removing the plugins" : "";
  if (counts.decided < counts.entries) return "";
  if (upload?.state === "uploading") return "uploading the results";
  const packing = launcher ? ["removing", "done"].includes(launcher.step) : status === "post-processing";
  return packing && !tar ? "finishing" : "";
}

/** What is said below the headline; until all entries are there, only what the run itself says. */
function summary(fields, all, whole, loaded) {
  const { counts } = fields, doing = ending(fields);
  const parts = [`${number.format(counts.received)} of ${count(counts.entries, "result")} received`];
  const add = (many, word) => { if (many) parts.push(`${number.format(many)} ${word}`); };
  if (!whole) {
    add(counts.failed, "failed");
    add(counts.unknown, "unknown");
    if (doing) parts.push(doing);
    return [...parts, `loading ${number.format(loaded)} of ${number.format(counts.entries)}…`];
  }
  add(all.failed, "failed");
  add(all.timed_out, "timed out");
  if (all.check_failed) parts.push(count(all.check_failed, "failed check"));
  add(all.unknown, "unknown");
  add(all.silent, "silent");
  add(all.running + all.silent + all.retrying, "open");
  if (doing) parts.push(doing);
  if (all.failures) parts.push(count(all.failures, "failed test"));
  return parts;
}

/** What hinders the run as a whole, and where its plugins do not run. */
function troubles({ error, launcher, skipped, upload }) {
  const said = error === null ? [] : [`The aggregator itself failed: ${error}`];
  if (launcher?.degraded) said.push(`The launcher has been blocked since ${when(launcher.degraded.since, hours)}: ${launcher.degraded.reason}`);
  for (const { object, reason } of launcher?.stays ?? []) said.push(`${object} could not be removed: ${reason}`);
  if (upload?.error) said.push(`${UPLOADS[upload.state] ?? upload.state} ${upload.host}: ${upload.error}`);
  for (const { name, node, reason } of (skipped ?? []).slice(0, 5)) said.push(`${name} skips node ${node}: ${reason}`);
  if (skipped?.length > 5) said.push(`${number.format(skipped.length - 5)} more skipped`);
  return said;
}

/** Show the fields of the run; `all` is the tally of the entries that are there. */
export function showRun(run, all) {
  const { fields } = run;
  const { word, kind } = headline(fields);
  mark($("hero"), "kind", kind);
  sign($("hero-icon"), kind in WORDS ? kind : "unknown");
  say($("hero-status"), fields.status === "failed" && !fields.final ? "Failed, still running" : word);
  say($("hero-sub"), summary(fields, all, run.whole, run.entries.size).join(" · "));
  const tests = sumOf(fields.result_counts);
  $("hero-tests").hidden = !tests;
  say($("hero-tests"), tests ? `${count(tests, "test")}: ${outcomes(fields.result_counts)}` : "");
  const decided = percent(fields.percent_complete), here = percent(fields.plugins_reported);
  if ($("percent").dataset.value !== String(decided)) {
    $("percent").dataset.value = String(decided);
    $("percent").replaceChildren(String(decided), make("small", { textContent: "%" }));
  }
  const meaning = `${decided} % of the expected results are decided: received or given up. ${here} % are received.`;
  for (const element of [$("percent"), $("bar")]) if (element.title !== meaning) element.title = meaning;
  $("bar").setAttribute("aria-valuenow", String(decided));
  for (const part of $("bar").children) share(part, all[part.dataset.kind], fields.counts.entries);
  const trouble = troubles(fields);
  $("run-error").hidden = !trouble.length;
  say($("run-error"), trouble.join(" · "));
  const tar = fields["tar-info"], { upload } = fields, shown = tar && `${tar.sha256} ${upload?.state}`;
  if (tar && $("tar").dataset.shown !== shown) {
    $("tar").dataset.shown = shown;
    const where = upload ? [["Upload", `${UPLOADS[upload.state] ?? upload.state} ${upload.host}`]] : [];
    facts($("tar"), [...where, ["Results", make("a", { href: "results", download: tar.name, textContent: tar.name })], ["Size", size(tar.size)], ["SHA-256", make("span", { className: "mono", textContent: tar.sha256 })]]);
  }
  $("tar").hidden = !tar;
  say($("run-id"), fields.run);
  say($("updated"), `As of ${when(fields.time)}, revision ${number.format(fields.revision)}`);
  const title = `${decided} % · ${word} · ${fields.run}`;
  if (document.title !== title) document.title = title;
}
