// The words for what is known, and in which order states ask for attention.

export const WORDS = {
  running: "Running", complete: "Complete", failed: "Failed", timed_out: "Timed out",
  check_failed: "Check failed", unknown: "Unknown",
  silent: "Silent", retrying: "Retrying", "post-processing": "Post-processing",
};
export const CAUSES = {
  upload_failed: "Upload failed", worker_error: "Worker reported an error",
  start_failed: "Could not start", pod_failed: "Pod failed", lost: "Result lost",
  deadline: "Timed out", heartbeat: "No heartbeat", stopped: "Stopped", "": "Failed",
};
export const UPLOADS = {
  waiting: "will be uploaded to", uploading: "uploading to", uploaded: "uploaded to",
  failed: "could not be uploaded to",
};
export const ORDER = ["failed", "timed_out", "check_failed", "unknown", "silent", "retrying", "running", "complete"];
export const VERDICTS_KNOWN = { passed: "Passed", failed: "Failed", timeout: "Timed out", unknown: "Unknown", "": "No verdict yet" };
/** A plugin may have words of its own, and no word is what objects are born with. */
export const verdictWord = (word) => (Object.hasOwn(VERDICTS_KNOWN, word) ? VERDICTS_KNOWN[word] : word);
const VERDICTS = { failed: "check_failed", unknown: "unknown" };
export const RANK = Object.fromEntries(ORDER.map((kind, index) => [kind, index]));

export const number = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
export const hours = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

export const count = (many, one, more = `${one}s`) => `${number.format(many)} ${many === 1 ? one : more}`;

export function age(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  const whole = Math.floor(seconds / 3600);
  return whole < 48 ? `${whole} h ago` : `${Math.floor(whole / 24)} days ago`;
}

export function size(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let unit = 0, value = bytes;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

export function when(text, format = clock) {
  const date = new Date(text);
  return isNaN(date) ? text : format.format(date);
}

export function kindOf(entry) {
  if (entry.status === "complete") return VERDICTS[entry.result_status] ?? "complete";
  if (entry.status !== "running") return entry.status in RANK ? entry.status : "failed";
  return entry.stale ? "silent" : entry.retry_until ? "retrying" : "running";
}

const WORST = ["failed", "timeout", "unknown"], BEST = ["skipped", "passed"];
const order = (word) => (WORST.includes(word) ? WORST.indexOf(word) - WORST.length : BEST.indexOf(word) + 1);

/** How many tests had which outcome, the worst first; a plugin's own words are between. */
export const outcomes = (counts) => Object.entries(counts ?? {}).filter(([, many]) => many > 0)
  .sort(([one], [other]) => order(one) - order(other))
  .map(([word, many]) => `${number.format(many)} ${word === "timeout" ? "timed out" : word}`).join(", ");

export const sumOf = (counts) => Object.values(counts ?? {}).reduce((sum, many) => sum + many, 0);

/** A share as a whole number of percent; 0.29 * 100 is less than 29. */
export const percent = (share) => Math.floor(Math.round(share * 10000) / 100);
