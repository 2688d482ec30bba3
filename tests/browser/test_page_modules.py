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
  "last-heartbeat": null, stale: false, retry_until: null, reason: "", message: "", error: null,
  progress: null, ...more,
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
        (29, "percent(0.29)"),
        (99, "percent(0.9999)"),
        (100, "percent(1)"),
    ],
)
def test_words(asked, said, call):
    """Numbers, ages and sizes as people say them; what is no time stays as it is."""
    assert said == asked("words", "count, age, size, when, percent", f"return {call};")


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("running", "{}"),
        ("silent", "{stale: true, retry_until: 'x'}"),
        ("retrying", "{retry_until: 'x'}"),
        ("complete", "{status: 'complete', result_status: 'passed'}"),
        ("complete", "{status: 'complete', result_status: ''}"),
        ("check_failed", "{status: 'complete', result_status: 'failed'}"),
        ("unknown", "{status: 'complete', result_status: 'unknown'}"),
        ("timed_out", "{status: 'timed_out', result_status: 'timeout'}"),
        ("failed", "{status: 'of a later version'}"),
    ],
)
def test_the_kind_of_an_entry(asked, kind, more):
    """What asks for attention comes first; a state that is not known is no good one."""
    assert kind == asked("words", "kindOf", f"return kindOf(told('p/n', {more}));")


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ("", "null"),
        ("1,000 passed", "{passed: 1000, failed: 0}"),
        (
            "1 failed, 2 timed out, 3 unknown, 4 worn, 5 skipped, 6 passed",
            "{passed: 6, worn: 4, skipped: 5, unknown: 3, failed: 1, timeout: 2}",
        ),
    ],
)
def test_outcomes(asked, said, counts):
    """The worst first, a plugin's own words between; what nothing has is not said."""
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
        (True, "{status: 'complete', result_status: 'failed', reason: 'TestsFailed'}"),
        (True, "{status: 'complete', result_status: 'unknown', result_counts: {a: 2}}"),
        (False, "{status: 'complete', result_status: 'failed', result_counts: {failed: 1}}"),
        (False, "{status: 'complete', result_status: 'passed', result_counts: {passed: 9}}"),
        (False, "{status: 'failed', result_status: 'failed', reason: 'TestsFailed'}"),
    ],
)
def test_entries_with_more_to_tell(asked, has, more):
    """Tests are asked for only where the row has not said it all."""
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
    entry.take(told("P/Node", {progress, error: {cause: "lost", reason: "Gone", text: "Away"}}));
    const before = entry.placed({sort: "progress", text: "result lost"});
    entry.take(told("P/Node", {status: "complete", "last-heartbeat": 3}));
    return [before, entry.placed({sort: "plan", text: ""}), entry.share, entry.silent === Infinity];
    """
    assert ["running  0.2 true", "complete   true", 1, True] == asked("entry", "Entry", script)


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
      told("p/10", {{status: "complete", result_status: "passed"}}),
      told("p/9", {{"last-heartbeat": 4}}),
      told("q/1", {{status: "failed"}}),
    ]}});
    const view = {{only: "", verdict: null, text: "", sort: "plan", down: false, ...{view}}};
    return chosen(run.entries.values(), view).map(entry => entry.told.key).join(" ");
    """
    assert order == asked("list", "chosen", script)


@pytest.mark.parametrize(
    ("said", "status", "more"),
    [
        (["Running", "running"], "running", "{}"),
        (["Failed", "failed"], "failed", "{failed: 2}"),
        (["Complete, 2 of 3 failed", "failed"], "complete", "{failed: 2, unknown: 1}"),
        (["Complete, 1 of 3 unknown", "unknown"], "complete", "{unknown: 1}"),
        (["Complete, no results expected", "unknown"], "complete", "{entries: 0}"),
        (["later", "later"], "later", "{}"),
    ],
)
def test_the_headline(asked, said, status, more):
    """From what the run says of its entries: they need not be there yet."""
    script = f"""
    const {{word, kind}} = headline({{
      status: given[0], final: given[0] === "complete", counts: {{...counts(3), ...{more}}},
    }});
    return [word, kind];
    """
    assert said == asked("hero", "headline", script, status)


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
