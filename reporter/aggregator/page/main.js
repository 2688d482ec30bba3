// The live page of one run: it shows what the aggregator tells, as often as the screen is drawn.

import { $, say } from "./elements.js";
import { showRun } from "./hero.js";
import { Link } from "./link.js";
import { List } from "./list.js";
import { showPlugins } from "./plugins.js";
import { Run, tally, verdicts } from "./run.js";
import "./theme.js";

const LINKS = {
  connecting: "Connecting…", live: "Live", lost: "Reconnecting…",
  paused: "Paused", over: "Run is over",
};

let drawing = 0;

const run = new Run(() => { drawing ||= requestAnimationFrame(() => { drawing = 0; draw(); }); });
const list = new List(run);
const link = new Link(run, (state) => {
  draw(); // "Run is over" is shown only with the run's last word
  $("link").dataset.link = state;
  say($("link-text"), LINKS[state]);
});

function draw() {
  const { news } = run;
  run.forget();
  for (const entry of news.entries) {
    const placed = entry.placed(list.view);
    if (placed !== entry.lastPlaced) news.order = true;
    entry.lastPlaced = placed;
    entry.row?.show();
  }
  if (!run.fields) return;
  if (news.fields) {
    const all = tally(run.entries.values());
    showRun(run, all);
    showPlugins(run);
    list.showChips(all);
    list.showVerdicts(verdicts(run.entries.values()));
  }
  if (news.order) list.showOrder();
}

document.addEventListener("visibilitychange", () => { if (document.hidden) link.pause(); else link.resume(); });
addEventListener("pagehide", () => link.disconnect());
addEventListener("pageshow", (event) => { if (event.persisted) link.resume(); });
addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    $("search").focus();
  }
});

if (!document.hidden) link.connect();
