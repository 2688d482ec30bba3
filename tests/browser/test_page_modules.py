"""The page's modules, each alone: no run is shown, only what a module answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.stage import Stage
from tests.browser.webdriver import Browser

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

TOLD = """
const told = (key, more = {}) => ({
  key, name: key.split("/")[0], node: key.split("/")[1], status: "running", result_status: "",
  "last-heartbeat": null, progress: null, ...more,
  display: {state: "running", progress: "", detail: "", ...more.display},
});
const counts = (entries) => ({entries, decided: 0, received: 0, failed: 0, unknown: 0});
const fields = (revision, more = {}) => ({run: "r", revision, counts: counts(3), ...more});
const keys = (run) => [...run.entries.keys()];
"""


@pytest.fixture(scope="module")
def asked(open_browser: Callable[[], Browser]) -> Iterator[Callable[..., Any]]:
    """Runs lines of script with a module's exports, where the page is served from."""
    with Stage([]) as stage:
        browser = open_browser()
        browser.open(stage.url + "page/page.css")  # the same origin, and nothing else at work

        def ask(module: str, names: str, script: str, *arguments: object) -> Any:
            return browser.run(
                f"const given = arguments; return (async () => {{"
                f"const {{{names}}} = await import('/page/{module}.js'); {TOLD} {script} }})()",
                *arguments,
            )

        yield ask
        browser.quit()


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("1 result", "count(1, 'result')"),
        ("20,000 results", "count(20000, 'result')"),
        ("59 s ago", "age(59.9)"),
        ("1 min ago", "age(60)"),
        ("47 h ago", "age(47 * 3600)"),
        ("2 days ago", "age(48 * 3600)"),
        ("1023 bytes", "size(1023)"),
        ("1.0 KiB", "size(1024)"),
        ("2048.0 GiB", "size(2 ** 41)"),
        ("soon", "when('soon')"),
        ("Check failed", "label('check_failed')"),
        ("", "label('')"),
    ],
)
def test_words(asked, said, call):
    """Numbers, ages and sizes as people say them; what is no time stays as it is."""
    assert said == asked("words", "count, age, size, when, label", f"return {call};")


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ("", "null"),
        ("1,000 passed", "{passed: 1000, failed: 0}"),
        (
            "1 failed, 6 passed, 5 skipped, 2 timeout, 3 unknown, 4 worn",
            "{passed: 6, worn: 4, skipped: 5, unknown: 3, failed: 1, timeout: 2}",
        ),
    ],
)
def test_outcomes(asked, said, counts):
    """By their words; what nothing has is not said."""
    assert said == asked("words", "outcomes", f"return outcomes({counts});")


def test_the_tests_of_a_plugin(asked):
    """Added up while entries change; a word that objects are born with is one like others."""
    script = """
    const run = new Run(() => {}), counted = (key, result_counts) => told(key, {result_counts});
    run.take({...fields(1), plugins: [counted("p/1", {passed: 2}), counted("p/2", null)]});
    run.take({...fields(2), plugins: [counted("p/1", {passed: 1, failed: 1})]});
    run.take({...fields(3), plugins: [counted("p/2", {passed: 3, constructor: 1})]});
    return {...run.tests.get("p")};
    """
    assert {"passed": 4, "failed": 1, "constructor": 1} == asked("run", "Run", script)


@pytest.mark.parametrize(
    ("has", "more"),
    [
        (True, "{status: 'complete', display: {state: 'check_failed'}}"),
        (False, "{status: 'complete', display: {state: 'complete'}}"),
        (False, "{status: 'failed', display: {state: 'failed'}}"),
        (False, "{}"),
    ],
)
def test_entries_with_more_to_tell(asked, has, more):
    """Tests are asked for where a result did not pass."""
    assert has is asked("report", "hasReport", f"return hasReport(told('p/n', {more}));")


ANSWERS = """
const [answers, abort] = given, [real, clock] = [window.fetch, window.setTimeout];
const ended = new AbortController(), waits = [], said = [];
window.fetch = async () => {
  const [status, body, after] = answers.shift() ?? [200, '"there"'];
  if (!status) throw new TypeError("the network is away");
  return new Response(body, {status, headers: after ? {"Retry-After": after} : {}});
};
window.setTimeout = (go, wait) => {
  waits.push(wait);
  clock(abort ? () => ended.abort() : go, 0);
};
try {
  const last = await ask("x", ended.signal, (text) => said.push(text)).catch(error => error.name);
  return [last, waits, said];
} finally {
  [window.fetch, window.setTimeout] = [real, clock];
}
"""
"""Asks where these answers come one after the other: status, body, Retry-After."""
THERE = {"found": "there", "problem": ""}


@pytest.mark.parametrize(
    ("answers", "waits", "said", "last"),
    [
        ([], [], [], THERE),
        ([[409, "still read", "7"]], [7000], ["Still read."], THERE),
        ([[503, "away", ""], [429, "", "2"]], [3000, 2000], ["Away.", "429."], THERE),
        ([[503, "away", "86400"]], [60_000], ["Away."], THERE),
        ([[503, "away", "Thu, 01 Jan 2026 00:00:00 GMT"]], [3000], ["Away."], THERE),
        ([[0, ""]], [3000], ["The aggregator cannot be reached."], THERE),
        ([[410, "gone", "5"]], [], [], {"found": None, "problem": "Gone."}),
    ],
)
def test_a_document_is_asked_for_until_an_answer_lasts(asked, answers, waits, said, last):
    """After as many seconds as the answer says, a minute at most; meanwhile the reason is told."""
    assert [last, waits, said] == asked("ask", "ask", ANSWERS, answers, False)


def test_a_document_that_is_not_wanted_any_more(asked):
    """Closed while it waits: nobody is asked again."""
    answers = [[503, "away", "9"], [503, "never", ""]]
    assert ["AbortError", [9000], ["Away."]] == asked("ask", "ask", ANSWERS, answers, True)


def test_an_entry(asked):
    """Numbers that cannot be are none; its words are found in small letters."""
    script = """
    const entry = new Entry(7);
    const progress = {msg: "Reading", total: 10, completed: -5, failures_total: 2};
    entry.take(told("P/Node", {progress, display: {detail: "Gone: Away"}}), 4);
    const before = entry.placed({sort: "progress", text: "gone: away"});
    entry.take(told("P/Node", {status: "complete", "last-heartbeat": 3}), 7);
    return [before, entry.placed({sort: "plan", text: ""}), entry.share, entry.silent === Infinity];
    """
    assert ["4  0.2 true", "7   true", 1, True] == asked("entry", "Entry", script)


def test_pages_add_up(asked):
    """In the order they come, which is that of the plan; whole when the last is there."""
    script = """
    const run = new Run(() => {}), seen = [];
    for (const plugins of [["b/1", "a/1"], ["c/1"]]) {
      run.take({...fields(1), plugins: plugins.map(key => told(key)), next: null});
      seen.push(run.whole);
    }
    return [keys(run), [...run.entries.values()].map(entry => entry.index), seen];
    """
    assert [["b/1", "a/1", "c/1"], [0, 1, 2], [False, True]] == asked("run", "Run", script)


def test_heartbeats_are_told_beside_the_entries(asked):
    """Of entries that are known; a worker that is not awaited any more is not silent."""
    script = """
    const run = new Run(() => {});
    const done = told("p/2", {status: "complete"});
    run.take({...fields(1), plugins: [told("p/1", {"last-heartbeat": 90}), done]});
    run.take({...fields(1), plugins: [], heard: {"p/1": 3, "p/2": 4, "p/3": 5}});
    const [one, two] = run.entries.values(), age = (performance.now() - one.silent) / 1000;
    return [keys(run), Math.round(age), two.silent === Infinity];
    """
    assert [["p/1", "p/2"], 3, True] == asked("run", "Run", script)


def test_another_run(asked):
    """Nothing of the one before is left."""
    script = """
    const run = new Run(() => {});
    run.take({...fields(9), plugins: [told("p/1"), told("p/2")]});
    run.take({...fields(1, {run: "other"}), plugins: [told("q/1")]});
    return [keys(run), run.fields.revision];
    """
    assert [["q/1"], 1] == asked("run", "Run", script)


@pytest.mark.parametrize(
    ("view", "order"),
    [
        ("{sort: 'plan'}", "p/10 p/9 q/1"),
        ("{sort: 'plan', down: true}", "q/1 p/9 p/10"),
        ("{sort: 'key'}", "p/9 p/10 q/1"),
        ("{sort: 'status'}", "q/1 p/9 p/10"),
        ("{sort: 'heartbeat'}", "p/9 p/10 q/1"),
        ("{sort: 'plan', only: 'running'}", "p/9"),
        ("{sort: 'plan', text: 'p/'}", "p/10 p/9"),
        ("{sort: 'plan', text: 'nothing'}", ""),
        ("{sort: 'plan', verdict: 'passed'}", "p/10"),
        ("{sort: 'plan', verdict: ''}", "p/9 q/1"),
    ],
)
def test_the_list(asked, view, order):
    """Filtered and in order; what is equal stays as in the plan."""
    script = f"""
    const run = new (await import("/page/run.js")).Run(() => {{}});
    run.take({{...fields(1), plugins: [
      told("p/10", {{status: "complete", result_status: "passed", display: {{state: "complete"}}}}),
      told("p/9", {{"last-heartbeat": 4}}),
      told("q/1", {{status: "failed", display: {{state: "failed"}}}}),
    ]}});
    const view = {{only: "", verdict: null, text: "", sort: "plan", down: false, ...{view}}};
    return chosen(run.entries.values(), view).map(entry => entry.told.key).join(" ");
    """
    assert order == asked("list", "chosen", script)


def test_elements_are_changed_only_where_they_differ(asked):
    """A text that stays is not written again: a selection in it would go."""
    script = """
    const aria = {"aria-hidden": "true"};
    const element = make("p", {className: "c", data: {kind: "k"}, aria}, "<b>");
    const text = element.firstChild;
    say(element, "<b>");
    const kept = element.firstChild === text;
    share(element, 5, 4);
    const full = element.style.getPropertyValue("--share");
    share(element, 1, 0);
    say(element, "other");
    return [element.outerHTML, kept, full];
    """
    written = '<p class="c some-of" aria-hidden="true" data-kind="k" style="--share: 0;">other</p>'
    found, kept, full = asked("elements", "make, say, share", script)

    assert (True, "1.0000") == (kept, full)
    assert sorted(written[1:].split()) == sorted(found[1:].split())
