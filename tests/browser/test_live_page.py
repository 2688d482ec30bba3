"""The live page in a real browser: what a person sees, and what the page does by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from reporter.run.plan import Key
from reporter.run.record import Cause
from reporter.run.state import LauncherTrouble, Phase, PodState, Step, Tar
from reporter.run.tar_upload import TarUpload, UploadState
from tests.aggregators.served import Aggregator, plan
from tests.browser.stage import LINK, PLUGINS, ROWS, Stage, opened, rehearse

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

E2E = Key("e2e", "global")
SMALL = [{"name": "e2e"}, {"name": "sysd", "nodes": ["node1", "node2", "node3"]}]
KEYS = (
    f"{ROWS}.map(row => row.querySelector('b').textContent"
    " + '/' + row.querySelector('.mono').textContent)"
)
ENTER, TAB = "\ue007", "\ue004"


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A small run that has just begun."""
    with Stage(SMALL) as small:
        yield small


def row(key: Key) -> str:
    """An expression for the row of a key."""
    node = "cluster-wide" if key.node == "global" else key.node
    return f"{ROWS}.find(row => row.querySelector('.who').textContent === '{key.plugin}{node}')"


def test_live_update(browser, stage):
    """Progress, results and errors show without a reload, in the title as well."""
    opened(browser, stage.url, 4)
    stage.progress(E2E, msg="checking quotas", total=12, completed=5, failures=("dns",))
    browser.until(f"{row(E2E)}.innerText.includes('checking quotas')")
    said = browser.run(f"return {row(E2E)}.innerText")
    stage.fail(Key("sysd", "node2"), Cause.WORKER_ERROR, "no journal", "logs")
    stage.receive(Key("sysd", "node1"))
    browser.until(
        "document.querySelector('#hero-status').textContent === arguments[0]",
        "Failed, still running, 1 of 4 failed",
    )
    browser.until("document.querySelector('#percent').textContent === '50%'")

    assert "5/12 (1 failed)" in said
    assert "logs: no journal" in browser.text("#rows")
    assert (
        "2 of 4 done (50%), may still change if a late result arrives"
        " · 1 failed · 2 running · 1 complete · 1 failed test"
    ) == browser.text("#hero-sub")
    assert browser.run("return document.title").startswith(
        "50 % · Failed, still running, 1 of 4 failed · "
    )
    assert "sysd/node2" == browser.run(f"return {KEYS}[0]")
    assert [] == browser.complaints()


def test_the_end(browser, stage):
    """The last word, the packed results, and then nobody is asked any more."""
    opened(browser, stage.url, 4)
    for key in stage.keys:
        stage.receive(key)
    stage.call(stage.store.advance_run(Phase.POST_PROCESSING))
    browser.until("document.querySelector('#hero-status').textContent === 'Post-processing'")
    tar = Tar("x_202601010000.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, 1_500_000)
    trying = TarUpload("store", UploadState.UPLOADING, 1.0, "503")
    stage.call(stage.store.note_upload(trying, tar))
    browser.until("document.querySelector('#tar').textContent.includes('store: uploading')")
    again = "uploading the results to store; it is tried again: 503"
    assert again == browser.text("#problems")
    assert "4 of 4 done (100%), uploading the results · 4 complete" == browser.text("#hero-sub")
    stage.call(stage.store.note_upload(TarUpload("store", UploadState.UPLOADED, 2.0)))
    stage.call(stage.store.advance_run(Phase.CLOSED, tar=tar))
    browser.until(f"{LINK} === 'Run is over'")

    assert "Complete" == browser.text("#hero-status")
    assert "store: uploaded" in browser.text("#tar")
    assert tar.name in browser.text("#tar")
    assert "1.4 MiB" in browser.text("#tar")
    assert not stage.watched
    assert [] == browser.complaints()


def test_the_end_comes_between_two_frames(browser, stage):
    """Where the page says that the run is over, everything else on it is the last word, too."""
    opened(browser, stage.url, 4)
    browser.run("window.requestAnimationFrame = () => 1")  # no frame comes any more
    for key in stage.keys:
        stage.receive(key)
    stage.call(stage.store.advance_run(Phase.POST_PROCESSING))
    tar = Tar("x_202601010000.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, 1_500_000)
    stage.call(stage.store.advance_run(Phase.CLOSED, tar=tar))
    browser.until(f"{LINK} === 'Run is over'")

    assert "Complete" == browser.text("#hero-status")
    assert tar.name in browser.text("#tar")


def test_what_the_launcher_shows(browser):
    """Who is skipped, what a Pod waits for, what holds the launcher up, and how the run ends."""
    skipped = [{"node": "win1", "reason": "not Linux"}]
    pending = PodState("e2e-x", "node1", "Pending", "ErrImagePull", "not found", 1.0, 0)
    with Stage([{**SMALL[0], "skipped": skipped}]) as launched:
        launched.launch(Step.WATCHING, pods={E2E: pending})
        opened(browser, launched.url, 1)
        waits = browser.run(f"return {row(E2E)}.querySelector('.text:last-child').textContent")
        state = browser.run(f"return {row(E2E)}.querySelector('.state').textContent")
        browser.run(f"{row(E2E)}.querySelector('.expand').click()")
        browser.until("document.querySelectorAll('.more').length === 1")
        details = browser.text(".more")
        first = browser.text("#problems")
        launched.launch(Step.WATCHING, degraded=LauncherTrouble(1.0, "watching Jobs: 403"))
        browser.until("document.querySelector('#problems').textContent.includes('blocked since')")
        held_up = browser.text("#problems")
        browser.until(f"!{row(E2E)}.textContent.includes('ErrImagePull')")
        launched.receive(E2E)
        ends = []
        launched.launch(Step.REMOVING)
        over = Phase.POST_PROCESSING, Phase.CLOSED
        for phases, doing in (((), "finishing"), (over, "removing")):
            for phase in phases:
                launched.call(launched.store.advance_run(phase))
            browser.until(
                "document.querySelector('#hero-sub').textContent.includes(arguments[0])", doing
            )
            ends.append(browser.text("#hero-sub"))
        launched.launch(Step.DONE, stays={"Job r1": "it is being deleted"})
        browser.until("document.querySelector('#problems').textContent.includes('Job r1')")
        stays = browser.text("#problems")

    assert ("Waiting", "Pending: ErrImagePull: not found") == (state, waits)
    assert "e2e-x, on node1, Pending" in details
    assert "ErrImagePull: not found" in details
    assert "plugin e2e skips node win1: not Linux" == first
    assert held_up.endswith(": watching Jobs: 403 · plugin e2e skips node win1: not Linux")
    done = "1 of 1 done (100%)"
    assert [
        f"{done}, finishing · 1 complete",
        f"{done}, final, removing the plugins · 1 complete",
    ] == ends
    assert "Job r1 could not be removed: it is being deleted · " in stays
    assert [] == browser.complaints()


def test_a_check_that_failed(browser, stage):
    """Delivered, and red: in the headline, in the title, and in its row with reason and message."""
    opened(browser, stage.url, 4)
    node1, node2, node3 = (Key("sysd", f"node{number}") for number in (1, 2, 3))
    why = {"reason": "DiskTooSlow", "message": "p99 is 80 ms"}
    stage.receive(node1, verdict="failed", **why)
    browser.until("document.querySelector('#hero-status').textContent === 'Running, 1 of 4 failed'")
    early = browser.run("return document.querySelector('#hero').dataset.kind")
    stage.receive(node2, verdict="unknown", reason="InvalidResultFormat", message="no object")
    for key in (node3, E2E):
        stage.receive(key, verdict="passed", reason="AllGood", message="fine")
    stage.call(stage.store.advance_run(Phase.POST_PROCESSING))
    tar = Tar("x_202601010000.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, 1_500_000)
    stage.call(stage.store.advance_run(Phase.CLOSED, tar=tar))
    browser.until(f"{LINK} === 'Run is over'")

    assert "failed" == early
    headline = "Complete, 1 of 4 failed, 1 of 4 unknown"
    assert headline == browser.text("#hero-status")
    assert "failed" == browser.run("return document.querySelector('#hero').dataset.kind")
    states = "1 check failed · 1 unknown · 2 complete"
    assert f"4 of 4 done (100%), final · {states}" == browser.text("#hero-sub")
    assert browser.run("return document.title").startswith(f"100 % · {headline} · ")
    assert ["sysd/node1", "sysd/node2"] == browser.run(f"return {KEYS}.slice(0, 2)")
    shown = [browser.run(f"return {row(key)}.innerText") for key in (node1, node2, node3)]
    for text, words in zip(
        shown,
        [
            ("Check failed", "DiskTooSlow: p99 is 80 ms"),
            ("Unknown", "InvalidResultFormat: no object"),
            ("Complete", "AllGood: fine"),
        ],
        strict=True,
    ):
        assert [] == [word for word in words if word not in text]
    assert ["check_failed", "unknown", "complete"] == [
        browser.run(f"return {row(key)}.dataset.kind") for key in (node1, node2, node3)
    ]
    browser.run("window.fetch = () => Promise.reject(new TypeError('the network is away'))")
    browser.run(f"{row(node1)}.querySelector('.expand').click()")
    browser.until("document.querySelector('.more .note').textContent.includes('cannot be reached')")
    told = browser.run("return [...document.querySelectorAll('.more dd')].map(e => e.textContent)")
    assert ["DiskTooSlow", "p99 is 80 ms"] == told[:2]
    assert [] == browser.complaints()


def test_what_the_percentage_means(browser, stage):
    """Results that were given up count as decided; how many are received stands beside it."""
    stage.receive(Key("sysd", "node1"))
    stage.fail(Key("sysd", "node2"), Cause.POD_FAILED, "OOMKilled")
    opened(browser, stage.url, 4)

    assert "50%" == browser.text("#percent")
    assert ("2 of 4 expected results are decided, 1 of them received.") == browser.run(
        "return document.querySelector('#percent').title"
    )


def test_heartbeats(browser, stage):
    """Ages grow by themselves, and a worker that is silent is pointed out."""
    stage.beat(E2E, 3600 * 3)
    stage.beat(Key("sysd", "node1"), 0)
    opened(browser, stage.url, 4)

    assert "Stale" in browser.run(f"return {row(E2E)}.innerText")
    assert "3 h ago" in browser.run(f"return {row(E2E)}.innerText")
    node1 = row(Key("sysd", "node1"))
    browser.until(f"/[2-9] s ago/.test({node1}.innerText)")
    stage.beat(Key("sysd", "node1"), 0)
    browser.until(f"/[01] s ago/.test({node1}.innerText)")
    assert "not yet" in browser.run(f"return {row(Key('sysd', 'node2'))}.innerText")


def test_reconnect_after_a_restart(browser, tmp_path):
    """The page says that it lost the aggregator, keeps what it knows, and is live again."""
    with Aggregator(tmp_path, plan("e2e", [])) as aggregator:
        opened(browser, f"http://127.0.0.1:{aggregator.status_port}/", 1)
        run = browser.text("#run-id")
        aggregator.kill()
        browser.until(f"{LINK} === 'Reconnecting…'")
        browser.until("document.querySelector('#link').dataset.link === 'lost'")
        assert 1 == browser.run(f"return {ROWS}.length")
        before = browser.run("return document.querySelector('#updated').textContent")
        aggregator.start()
        browser.until(f"{LINK} === 'Live'")
        browser.until("document.querySelector('#updated').textContent !== arguments[0]", before)

        assert run == browser.text("#run-id")


def test_a_page_that_nobody_looks_at(browser, stage):
    """Hidden: it asks no more. Seen again: it knows at once what has happened."""
    opened(browser, stage.url, 4)
    for hidden in (False, True):
        browser.hide(hidden)
        end = time.monotonic() + 30
        while stage.watched is hidden:
            assert time.monotonic() < end
            threading.Event().wait(0.05)
    paused = browser.run(f"return {LINK}")
    stage.progress(E2E, msg="while away")
    browser.hide(False)
    browser.until(f"{row(E2E)}.innerText.includes('while away')")

    assert "Paused" == paused


def test_hostile_text_stays_text(browser, stage):
    """Markup in messages, errors and failures is shown as it was sent and does nothing."""
    attack = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>&lt;b&gt;"
    turned = "\u202etxet desrever"
    stage.progress(
        E2E, msg=attack + turned, total=2**63 - 1, completed=-(2**63), failures=(attack,)
    )
    stage.fail(Key("sysd", "node1"), Cause.WORKER_ERROR, attack, attack)
    opened(browser, stage.url, 4)
    browser.run("for (const each of document.querySelectorAll('.expand')) each.click()")
    browser.until("document.querySelectorAll('.more').length === 4")

    assert attack + turned == browser.run(
        f"return {row(E2E)}.querySelector('.text:last-child').textContent"
    )
    assert 4 <= browser.run("return document.body.innerText.split(arguments[0]).length", attack)
    assert None is browser.run("return window.hacked ?? null")
    assert 0 == browser.run(
        "return document.querySelectorAll('img, #rows script, main b > b').length"
    )
    assert [] == browser.complaints()


def test_filter_and_sort(browser, stage):
    """By state, by any text, and by every column in both directions."""
    node1, node2, node3 = (Key("sysd", f"node{number}") for number in (1, 2, 3))
    stage.receive(node1)
    stage.fail(node2, Cause.POD_FAILED, "OOMKilled")
    stage.progress(node3, msg="half", total=10, completed=5, failures=("a", "b"))
    stage.progress(E2E, msg="begun", total=10, completed=1)
    opened(browser, stage.url, 4)
    orders = {"status": browser.run(f"return {KEYS}")}
    for name in ("key", "progress", "failures"):
        browser.click(f"th [data-sort={name}]")
        orders[name] = browser.run(f"return {KEYS}")
    browser.click("th [data-sort=failures]")
    descending = browser.run(f"return {KEYS}")
    direction = browser.run("return document.querySelector('th[aria-sort]').ariaSort")
    browser.click(".chip[data-kind=running]")
    running = browser.run(f"return {KEYS}")
    browser.click("#search")
    browser.press(*"HALF")
    browser.until(f"{ROWS}.length === 1")
    found = browser.run(f"return {KEYS}")
    browser.press("x")
    browser.until("!document.querySelector('#empty').hidden")

    e2e, one, two, three = "e2e/cluster-wide", "sysd/node1", "sysd/node2", "sysd/node3"
    assert {
        "status": [two, e2e, three, one],
        "key": [e2e, one, two, three],
        "progress": [two, e2e, three, one],
        "failures": [three, e2e, one, two],
    } == orders
    assert ([e2e, one, two, three], "descending") == (descending, direction)
    assert ([three, e2e], [three]) == (sorted(running, reverse=True), found)
    assert "No results match the filter." == browser.text("#empty")


def test_all_failures_of_an_entry(browser, stage):
    """The run lists the first 20; the details fetch the rest."""
    texts = tuple(f"test {number}" for number in range(70))
    stage.progress(E2E, msg="m", failures=texts, failures_total=90)
    opened(browser, stage.url, 4)
    browser.run(f"{row(E2E)}.querySelector('.expand').click()")
    browser.until("document.querySelectorAll('.more li').length === 70")

    assert "Failures (70 of 90)" in browser.text(".more")


def test_failures_that_could_not_be_fetched(browser, stage):
    """Asked for again although nothing else happens; and again when they are opened once more."""
    texts = tuple(f"test {number}" for number in range(70))
    stage.progress(E2E, msg="m", failures=texts)
    opened(browser, stage.url, 4)
    browser.run(
        """
        const real = window.fetch;
        window.asked = 0;
        window.fetch = (...args) => {
          if (!args[0].startsWith("status/")) return real(...args);
          window.asked += 1;
          if (window.asked === 1) return Promise.reject(new TypeError("the network is away"));
          if (window.asked === 2) return Promise.resolve(new Response("", {status: 503}));
          return real(...args);
        };
        """
    )
    click = f"{row(E2E)}.querySelector('.expand').click()"
    browser.run(click)
    browser.until("window.asked === 1")
    first = browser.run("return document.querySelectorAll('.more li').length")
    browser.until("document.querySelectorAll('.more li').length === 70")
    tries = browser.run("return window.asked")
    browser.run(click)
    browser.run(click)
    browser.until("document.querySelectorAll('.more li').length === 70")

    assert (20, 3, 4) == (first, tries, browser.run("return window.asked"))


def test_by_keyboard(browser, stage):
    """The first stop leads to the results, every control is reached, and focus is seen."""
    stage.fail(E2E, Cause.DEADLINE, "too late")
    opened(browser, stage.url, 4)
    browser.press(TAB)
    skip = browser.run("return document.activeElement.textContent")
    browser.press(ENTER)
    target = browser.run("return document.activeElement.id")
    browser.press("/")
    search = browser.run("return document.activeElement.id")
    browser.press(*"e2e")
    browser.until(f"{ROWS}.length === 1")
    for _ in range(9):
        browser.press(TAB)
        if browser.run("return document.activeElement.matches('.expand')"):
            break
    outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    browser.press(ENTER)
    opened_by_key = browser.text(".more")
    stage.progress(E2E, msg="moved")
    stage.receive(Key("sysd", "node1"))
    browser.until("document.querySelector('#hero-sub').textContent.startsWith('2 of 4')")

    assert ("Skip to the results", "results", "search") == (skip, target, search)
    assert "solid" == outline
    assert "Deadline" in opened_by_key
    assert browser.run("return document.activeElement.matches('.expand')"), "focus got lost"


def test_for_a_screen_reader(browser, stage):
    """Landmarks, headings, and a table that is one although its boxes are grids."""
    stage.progress(E2E, msg="m", total=3, completed=1)
    opened(browser, stage.url, 4)
    browser.devtools("Accessibility.enable")
    tree = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in tree if not node["ignored"]]
    names = {node["name"]["value"] for node in tree if node.get("name")}

    landmarks = {"banner", "main", "contentinfo"}
    assert landmarks | {"table", "searchbox", "progressbar", "status"} <= set(roles)
    assert (5, 6, 4) == (roles.count("row"), roles.count("columnheader"), roles.count("rowheader"))
    assert 20 == roles.count("cell") + roles.count("gridcell")
    assert {
        "Details of e2e/global",
        "Theme: system",
        "Filter by plugin, node or text",
    } <= names


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast(browser, dark):
    """Every word of a state, and soft text, has at least 4.5 to 1 against what is behind it."""
    browser.look(width=1280, height=860, dark=dark)
    with Stage(PLUGINS) as full:
        rehearse(full)
        opened(browser, full.url, len(full.keys))
        ratios = browser.run(
            """
            const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
            function light(color) {
              canvas.fillStyle = "#000"; canvas.fillRect(0, 0, 1, 1);
              canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
              const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(value => {
                const part = value / 255;
                return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
              });
              return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            }
            const behind = light(getComputedStyle(document.querySelector("table")).backgroundColor);
            const words = ".state, .who .mono, .text, .none, .some, .note, .sub";
            return [...document.querySelectorAll(words)].map(word => {
              const pair = [light(getComputedStyle(word).color), behind];
              const [one, other] = pair.sort((a, b) => b - a);
              return (one + 0.05) / (other + 0.05);
            });
            """
        )

    assert len(ratios) > 300
    assert min(ratios) >= 4.5


def test_the_theme_is_kept(browser, stage):
    """The button goes through system, light and dark; a reload keeps what was chosen."""
    scheme = "return getComputedStyle(document.documentElement).colorScheme"
    opened(browser, stage.url, 4)
    seen = [browser.run(scheme)]
    for _ in range(2):
        browser.click("#theme")
        seen.append(browser.run(scheme))
    opened(browser, stage.url, 4)
    seen.append(browser.run(scheme))

    assert ["light dark", "light", "dark", "dark"] == seen
    assert "Theme: dark" == browser.run("return document.querySelector('#theme').textContent")


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_screen_is_too_narrow(browser, width):
    """Nothing is wider than the screen, whatever is in the texts."""
    plugins = [{"name": "a" * 63, "nodes": ["n" * 200]}, *SMALL]
    with Stage(plugins) as wide:
        wide.fail(E2E, Cause.POD_FAILED, "x" * 900)
        wide.progress(Key("a" * 63, "n" * 200), msg="y" * 900, total=10**15, completed=10**14)
        browser.look(width=width, height=800, dark=False)
        opened(browser, wide.url, 5)
        browser.run("for (const each of document.querySelectorAll('.expand')) each.click()")

        assert width >= browser.run("return document.documentElement.scrollWidth")


@pytest.mark.parametrize(
    ("name", "width", "height", "dark", "scale"),
    [
        ("status-light", 1280, 880, False, 1.0),
        ("status-dark", 1280, 880, True, 1.0),
        ("status-phone", 390, 800, False, 1.5),
    ],
)
def test_pictures_for_the_documentation(browser, images, name, width, height, dark, scale):
    """They can be taken and are small; PICTURES=1 keeps them."""
    browser.look(width=width, height=height, dark=dark, scale=scale)
    with Stage(PLUGINS) as full:
        rehearse(full, trouble=name != "status-dark")
        opened(browser, full.url, len(full.keys))
        if name == "status-light":
            browser.click("#rows tr .expand")
            browser.run("document.activeElement.blur()")
        threading.Event().wait(0.6)  # until the bars have stopped moving
        picture = browser.picture()
    (images / f"{name}.png").write_bytes(picture)

    assert b"\x89PNG" == picture[:4]
    assert len(picture) < 200_000
    assert [] == browser.complaints()
