// Asking for a document beside the stream: what it says, or why there is none.

import { capital } from "./words.js";

const AGAIN = 3, LONGEST = 60; // seconds between two tries, where another one may help

/** Ask until there is an answer that lasts, or `signal` ends it. `tell` gets words for the time until then. */
export async function ask(url, signal, tell) {
  for (;;) {
    let problem = "The aggregator cannot be reached.", pause = AGAIN;
    try {
      const answer = await fetch(url, { cache: "no-cache", signal });
      if (answer.ok) return { found: await answer.json(), problem: "" };
      problem = `${capital((await answer.text()).trim() || String(answer.status))}.`;
      if (![409, 429, 503].includes(answer.status)) return { found: null, problem };
      pause = Math.min(Number(answer.headers.get("Retry-After")) || AGAIN, LONGEST);
    } catch (error) {
      if (signal.aborted) throw error;
    }
    tell(problem);
    await new Promise((go) => { setTimeout(go, 1000 * pause); signal.addEventListener("abort", go, { once: true }); });
    signal.throwIfAborted();
  }
}
