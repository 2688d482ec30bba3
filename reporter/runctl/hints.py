"""What a person can do with a run, as commands."""

import argparse
import shlex
import sys


def place_words(namespace: str, options: argparse.Namespace, *, own: bool = False) -> str:
    """Return the options by which a command finds a run there; its own is found by its name."""
    where = "" if own and not options.namespace else f" -n {namespace}"
    for name in ("context", "kubeconfig"):
        if given := getattr(options, name):
            where += f" --{name} {shlex.quote(given)}"
    return where


def hints(
    run: str,
    namespace: str,
    options: argparse.Namespace,
    *,
    own: bool,
    ended: bool = False,
    gone: bool = False,
    saved: bool = False,
) -> str:
    """Return what can be done with a run, as commands; its own namespace is found by its name.

    The run may have `ended`, its aggregator may be `gone` with it, and its results may be `saved`
    elsewhere. `delete` asks before anything is lost, on a terminal; elsewhere it needs `--yes`.
    """
    where = place_words(namespace, options, own=own)
    going = [
        ("look at it", f"status-ctl status {run}{where}"),
        ("wait for it", f"status-ctl wait run/{run}{where}"),
    ]
    fetched = ended and not gone  # by the command that is named before
    sure = "" if fetched or saved or sys.stderr.isatty() else " --yes"
    lines = [
        *([] if ended else going),
        *([("read the results", f"status-ctl results run/{run}{where}")] if fetched else []),
        *([] if gone else [("download the results", f"status-ctl retrieve {run}{where}")]),
        ("then delete it" if fetched else "delete it", f"status-ctl delete {run}{where}{sure}"),
    ]
    widest = max(len(what) for what, _ in lines)
    return "\n".join(
        ["what to do with the run:", *(f"  {what:<{widest}}  {how}" for what, how in lines)]
    )
