// The run as a whole, at the top of the page.

import { $, facts, make, mark, say, share, sign } from "./elements.js";
import { tallied } from "./run.js";
import { capital, number, size, tested, when } from "./words.js";

/** Show the fields of the run; `all` says how many of its entries are in which state. */
export function showRun(run, all) {
  const { fields, entries } = run, { display, counts, upload, "tar-info": tar } = fields;
  const headline = capital(display.headline), { percent } = display;
  mark($("hero"), "kind", display.state);
  sign($("hero-icon"), display.state);
  say($("hero-status"), headline);
  const more = run.whole ? tallied(all) : [`loading ${number.format(entries.size)} of ${number.format(counts.entries)}…`];
  say($("hero-sub"), [display.summary, ...more].join(" · "));
  say($("hero-tests"), tested(fields.result_counts));
  $("hero-tests").hidden = !$("hero-tests").textContent;
  if ($("percent").dataset.value !== String(percent)) {
    $("percent").dataset.value = String(percent);
    $("percent").replaceChildren(String(percent), make("small", { textContent: "%" }));
  }
  const meaning = `${number.format(counts.decided)} of ${number.format(counts.entries)} expected results are decided, ${number.format(counts.received)} of them received.`;
  for (const element of [$("percent"), $("bar")]) if (element.title !== meaning) element.title = meaning;
  $("bar").setAttribute("aria-valuenow", String(percent));
  for (const part of $("bar").children) share(part, all[part.dataset.kind], counts.entries);
  say($("problems"), display.problems.join(" · "));
  $("problems").hidden = !display.problems.length;
  const shown = tar && `${tar.sha256} ${upload?.state}`;
  if (tar && $("tar").dataset.shown !== shown) {
    $("tar").dataset.shown = shown;
    const where = upload ? [["Upload", `${upload.host}: ${upload.state}`]] : [];
    facts($("tar"), [...where, ["Results", make("a", { href: "results", download: tar.name, textContent: tar.name })], ["Size", size(tar.size)], ["SHA-256", make("span", { className: "mono", textContent: tar.sha256 })]]);
  }
  $("tar").hidden = !tar;
  say($("run-id"), fields.run);
  say($("updated"), `As of ${when(fields.time)}, revision ${number.format(fields.revision)}`);
  const title = `${percent} % · ${headline} · ${fields.run}`;
  if (document.title !== title) document.title = title;
}
