"""The end of a run is known, but its entries do not come."""

import io

from reporter.ctl.commands.wait import RunBar, wait
from reporter.ctl.run.origin import ByHttp
from reporter.ctl.run.server import StatusServer
from reporter.ctl.run.tls import Address
from tests.integration.ctl.scripted import Scripted, entry, run_status
from tests.scripted_server import Say


def test_entries_that_never_come_after_a_summary_that_said_the_end():
    """Too large, or the way is too slow: how the run ended is known all the same."""
    run = run_status("complete", entry("e2e"))
    summary = {name: value for name, value in run.items() if name != "plugins"} | {
        "final": True,
        "counts": {"entries": 1, "decided": 1, "received": 1, "failed": 0, "unknown": 0},
    }
    with Scripted(status=Say(503)) as server:
        server.answer("/status?summary=true", Say(body=summary))
        chosen = ByHttp(StatusServer(Address(server.url)))
        code, look = wait(chosen, "end", None, False, RunBar(io.StringIO()), sleep=lambda _: None)
        chosen.server.close()

    assert (0, summary) == (code, look.document)
