"""`status-ctl try`: the sidecar's loop around a process of this machine, and a Job in memory.

What a process looks like as a Pod is in `author/child.py`, what is shown in `author/terminal.py`.
"""

import argparse
import contextlib
import os
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from reporter.author.child import POD, Child
from reporter.author.memory_cgroup import MemoryCgroup, NoMemoryCgroup
from reporter.author.problems import problems_in
from reporter.author.terminal import JobInMemory, Timeline
from reporter.author.validate import mode_warning
from reporter.cli.exits import FAILED, GOOD, USAGE, content
from reporter.cli.options import size, wait_time
from reporter.cli.output import colour_argument, tell
from reporter.cli.table import wants_colour
from reporter.common.defaults import WAIT_SECONDS
from reporter.common.lifecycle import Stop, install
from reporter.common.objects import View
from reporter.common.yaml_text import to_yaml
from reporter.errors import SettingsError
from reporter.sidecar.files import ProgressFile, ResultFile
from reporter.sidecar.inotify import DirectoryWatch
from reporter.sidecar.job import JobCondition
from reporter.sidecar.loop import Inputs, Loop, Options
from reporter.verdict.adapter_files import MAX_RESULT_BYTES
from reporter.verdict.case import Observation, Policy
from reporter.verdict.condition import annotation_key
from reporter.verdict.facts import Form, Terminated, pod_of
from reporter.verdict.rows import TRUE, Row

NAMESPACE, JOB = "default", "try"
OWN_VERDICT = 3


class Settings(NamedTuple):
    """The reporter's settings that matter without a cluster, and its defaults for them."""

    max_wait_time_seconds: int = WAIT_SECONDS
    poll_interval_seconds: int = 2
    condition_type: str = "Available"
    result_required: bool = True
    result_trust: str = "at-once"
    report_running: bool = True
    report_details: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def poll_interval(self) -> float:
        """Seconds between two looks: a command may be over in less than the reporter's interval."""
        return min(float(self.poll_interval_seconds), self.max_wait_time_seconds / 2)


SETTINGS = [name.upper() for name in Settings._fields[:-1]]

DESCRIPTION = f"""\
Runs COMMAND as the adapter on this machine, without a cluster, and shows what the status reporter
would write on the Job: how the condition changes and what is wrong with the result file, as
comments, then the Job as YAML, the condition first; with -o yaml also the evidence.

COMMAND finds the paths of its files in RESULTS_PATH and PROGRESS_PATH. Its standard input is empty,
its output goes to standard error. When it exits, its remaining processes are killed, as in a
container. SIGTERM or Ctrl-C ends it like the deletion of its Pod: SIGTERM, 5 s later SIGKILL; a
second Ctrl-C kills it immediately.

These settings of the reporter are read from the environment:
  {", ".join(SETTINGS[:4])},
  {", ".join(SETTINGS[4:])}

exit codes:
  0    the adapter reported success
  1    the adapter reported failure
  2    usage error
  3    the adapter reported nothing valid: the verdict is the reporter's own
  130  Ctrl-C (143: SIGTERM)"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = (
        "status-ctl try [-h] [--timeout TIME] [--memory SIZE] [-o yaml] [--no-color] -- COMMAND..."
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=wait_time,
        help="timeout of the adapter, as 10s or 5m (default: MAX_WAIT_TIME_SECONDS, else 5m)",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=size,
        help="the container's memory limit, as in Kubernetes (64Mi, 1G); a memory cgroup enforces "
        "it, which may need root",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("yaml",),
        help="show the whole Job, with the evidence in its annotation",
    )
    colour_argument(parser)
    parser.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER, help="the adapter")


def run(options: argparse.Namespace) -> int:
    """Run the command, show what becomes of it, and return the exit code."""
    command: list[str] = options.command
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        options.error("missing COMMAND: put it after --")
    try:
        settings = choose(os.environ, options.timeout)
    except SettingsError as error:
        for problem in error.problems:
            tell(problem)
        return USAGE
    for warning in settings.warnings:
        tell(warning)
    return _try(command, options, settings)


def choose(environ: Mapping[str, str], timeout: int | None) -> Settings:
    """Return what the reporter would be told, with --timeout above it. Raises SettingsError."""
    given = {name: environ[name] for name in SETTINGS if environ.get(name, "").strip()}
    if not given:
        # Reading settings takes longer than the rest of the command: only for who has set one.
        settings = Settings()
        return settings if timeout is None else settings._replace(max_wait_time_seconds=timeout)
    from reporter.sidecar.settings import Settings as Variables

    if timeout is not None:
        given["MAX_WAIT_TIME_SECONDS"] = str(timeout)
    loaded = Variables.read({**given, "JOB_NAMESPACE": NAMESPACE, "JOB_NAME": JOB, "POD_NAME": POD})
    return Settings(*(getattr(loaded, name) for name in Settings._fields))


def _try(command: list[str], options: argparse.Namespace, settings: Settings) -> int:
    with contextlib.ExitStack() as stack:
        stop, cgroup = install(), _memory_cgroup(options.memory)
        if cgroup is not None:
            stack.callback(cgroup.remove)
        folder = tempfile.TemporaryDirectory(prefix="status-ctl-", ignore_cleanup_errors=True)
        # Resolved: the reporter follows no link on the way to its files.
        directory = Path(stack.enter_context(folder)).resolve()
        result, progress = directory / "adapter-result.json", directory / "progress.json"
        # Without a cgroup a hungry command must not take the whole machine down.
        child = Child(stop, cgroup, data_limit=options.memory if cgroup is None else None)
        stack.callback(child.close)
        _handle_signals(stop, child)
        timeline = Timeline(sys.stdout, colour=wants_colour(sys.stdout, refused=options.no_color))
        job = JobInMemory(NAMESPACE, JOB)
        sink = JobCondition(job, NAMESPACE, JOB, settings.condition_type)
        events = DirectoryWatch.open([result, progress])
        wait = float(settings.max_wait_time_seconds)
        end = time.monotonic() + wait
        child.start(
            command, {**os.environ, "RESULTS_PATH": str(result), "PROGRESS_PATH": str(progress)}
        )
        loop = Loop(
            Inputs(
                pod=child,
                result=ResultFile(result, others=[progress], details=settings.report_details),
                progress=ProgressFile(
                    progress, lambda cause: timeline.remark(f"progress file ignored: {cause}")
                ),
                file_events=events,
            ),
            sink,
            Options(
                pod_name=POD,
                policy=Policy(
                    wait=wait,
                    result_required=settings.result_required,
                    at_exit=settings.result_trust == "at-exit",
                    form=Form.NATIVE,
                ),
                report_running=settings.report_running,
                poll_interval=settings.poll_interval,
            ),
            # In the native form the reporter is stopped when the adapter is dead; until then a stop
            # is the deletion of the Pod, which the child shows.
            stop=Stop(stop.wake),
            telemetry=timeline,
        )
        loop.run()
        # A result is not the end: what the adapter does until then may contradict it.
        child.end_at(end)
        loop.idle(_end_was_seen)
        note = sink.standing.note if sink.standing is not None else None
        if note is not None and note.amended:
            timeline.remark(
                "a result arrived after the timeout (`late` in the annotation: -o yaml)"
                if note.row == Row.TIMEOUT
                else "that contradicts the result (`after` in the annotation: -o yaml)"
            )
        for remark in _faults(result):
            timeline.remark(f"result file: {remark}")
        metadata = dict(job.shown["metadata"])
        if options.output is None:
            shown = dict(View(job.shown).annotations)
            shown.pop(annotation_key(settings.condition_type), None)
            metadata["annotations"] = shown
        for part in ("apiVersion", "kind", "status"):
            # The condition is what people look for; the annotation would hide it.
            sys.stdout.write(to_yaml({part: job.shown[part]}))
        kept = {key: value for key, value in metadata.items() if value}
        sys.stdout.write(to_yaml({"metadata": kept}))
        if stop.signal is not None:
            return 128 + stop.signal
        if sink.standing is None or note is None or note.row != Row.RESULT:
            return OWN_VERDICT
        return GOOD if sink.standing.status == TRUE else FAILED


def _faults(result: Path) -> Iterator[str]:
    """Say what is wrong with the result file; what is no file is told by the condition."""
    with contextlib.suppress(OSError):
        mode = result.lstat().st_mode
        if not stat.S_ISREG(mode):
            return
        if warning := mode_warning(mode):
            yield f"warning: {warning}"
        for problem in problems_in(content(str(result), MAX_RESULT_BYTES + 1)):
            yield f"{problem.place}: {problem.severity}: {problem.words}"


def _end_was_seen(o: Observation) -> bool:
    """Return whether a look has shown the end; the child itself may have ended after it."""
    pod = pod_of(o.pod)
    return pod is not None and isinstance(pod.adapter_state, Terminated)


def _memory_cgroup(limit: int | None) -> MemoryCgroup | None:
    if limit is None:
        return None
    try:
        return MemoryCgroup.make(limit)
    except NoMemoryCgroup as error:
        tell(
            f"cannot create a memory cgroup ({error}): there will be no OOM kill.\n"
            "            Instead the data of each process is limited (RLIMIT_DATA): allocations "
            "fail.\n"
            "            A real limit requires root or a cgroup that is delegated to you."
        )
        return None


def _handle_signals(stop: Stop, child: Child) -> None:
    """The first signal ends the child, the second kills it, the third ends us whatever it does."""
    count = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count == 1:
            stop.on_signal(number, frame)
        elif count == 2:
            child.hurry()
        else:
            # Somebody else's process cannot be killed, with sudo for instance.
            os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
