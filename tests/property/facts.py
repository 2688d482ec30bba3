"""Values of every fact, ordinary ones often, extreme ones too."""

from hypothesis import strategies as st

from reporter.common.text import clean
from reporter.verdict.case import Observation, Policy
from reporter.verdict.facts import (
    Blocker,
    Container,
    Disruption,
    FileAbsent,
    FileBeforeStart,
    FileIdentity,
    FileInvalid,
    FileReadFailed,
    FileValid,
    Form,
    Job,
    Pod,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    Progress,
    RestartPolicy,
    RestartRule,
    ResultPayload,
    Running,
    Searched,
    Terminated,
    Waiting,
)
from reporter.verdict.history import EndedRun, History
from reporter.verdict.not_starting import AT_ONCE, CONFIG, IMAGE, START, Trouble
from reporter.verdict.rows import Row
from tests.situations import at

INT64 = st.integers(-(2**63), 2**63 - 1)


reals = st.floats(-(2.0**63), 2.0**63, allow_nan=False)


texts = st.sampled_from(["", "Error", "OOMKilled"]) | st.text(
    st.characters(codec=None, exclude_categories=()), max_size=40
)


moments = st.none() | st.integers(-5, 60).map(at) | st.floats(1, 2.0**40)


seconds = st.integers(-5, 400).map(float) | reals


reasons = st.sampled_from(
    [*sorted(IMAGE | CONFIG | START | AT_ONCE), "CrashLoopBackOff", "PodInitializing", ""]
)


runs = st.builds(
    Terminated,
    exit_code=st.sampled_from([0, 1, 137]) | INT64,
    reason=st.sampled_from(["Completed", "OOMKilled", "StartError", "ContainerStatusUnknown"])
    | texts,
    message=texts,
    started_at=moments,
    finished_at=moments,
    signal=INT64,
)


states = st.builds(Waiting, reasons | texts, texts) | st.builds(Running, moments) | runs


containers = st.builds(
    Container, name=texts, state=states, last=st.none() | runs, restarts=st.integers(0, 3) | INT64
)


policies = st.builds(
    RestartPolicy,
    st.sampled_from(["Never", "OnFailure", "Always", ""]),
    st.lists(
        st.builds(RestartRule, st.frozensets(st.sampled_from([0, 1, 137])), among=st.booleans()),
        max_size=2,
    ).map(tuple),
)


pods = st.builds(
    Pod,
    name=texts,
    uid=texts,
    created_at=moments,
    started_at=moments,
    phase=st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed"]),
    reason=st.sampled_from(["", "Evicted", "DeadlineExceeded"]) | texts,
    message=texts,
    form=st.none() | st.sampled_from(Form),
    adapter=st.none() | containers,
    misfit=texts,
    restart=policies,
    own_restart=policies,
    restarts_all=st.booleans(),
    own_restarts=st.none() | st.integers(0, 3) | INT64,
    only_adapters_write=st.booleans(),
    not_empty_dir=st.booleans(),
    blocker=st.none() | st.builds(Blocker, containers, for_good=st.booleans()),
    disruption=st.none() | st.builds(Disruption, texts, texts, st.booleans()),
    deletion_requested_at=st.none() | moments | reals,
    deletion_grace=st.none() | seconds,
    grace=seconds,
    deadline=st.none() | seconds,
    failing_at=moments,
)


looks = st.one_of(
    st.builds(PodSeen, pods, st.booleans()),
    st.builds(PodGone, pods),
    st.sampled_from([PodUnknown(), PodRefused(), PodNeverSeen()]),
)


identities = st.builds(
    FileIdentity,
    st.integers(0, 3),
    INT64,
    st.integers(-(10**30), 10**30),
    st.integers(-5, 60).map(lambda second: int(at(second)) * 10**9)
    | st.integers(-(10**30), 10**30),
)


results = st.builds(
    ResultPayload,
    st.booleans(),
    texts.map(lambda text: clean(text, 128, "NoReasonProvided")),
    texts.map(lambda text: clean(text, 1024, "No message provided")),
)


valid_files = st.builds(FileValid, results, identities)


files = st.one_of(
    st.just(FileAbsent()),
    st.builds(FileInvalid, texts, st.none() | identities),
    st.builds(FileReadFailed, texts, st.none(), st.none() | valid_files),
    valid_files,
)


jobs = st.builds(
    Job,
    uid=texts,
    started_at=moments,
    deadline=st.none() | seconds,
    suspended=st.booleans(),
    deleting=st.booleans(),
    failure=st.sampled_from(["", "BackoffLimitExceeded", "DeadlineExceeded"]) | texts,
)


histories = st.builds(
    History,
    waiting_since=seconds,
    waiting_since_at=st.floats(1, 2.0**40),
    first_started=st.none() | seconds,
    first_started_at=moments,
    trouble=st.none()
    | st.builds(
        Trouble,
        st.sampled_from([Row.IMAGE, Row.CONFIG, Row.START]),
        texts.map(lambda text: f"a: {text}"),
        st.booleans(),
    ),
    trouble_since=seconds,
    last_run=st.none() | st.builds(EndedRun, runs, INT64, files),
    last_pod=st.none() | pods,
    taken_away_since=st.none() | seconds,
    away=st.booleans(),
    returned=st.none() | seconds,
    refused_since=st.none() | seconds,
    read_failing_since=st.none() | seconds,
    file_before_start=st.none()
    | st.builds(FileBeforeStart, st.none() | identities, st.floats(1, 2.0**40)),
)


progress = st.builds(
    Progress,
    texts,
    st.none() | INT64,
    st.none() | INT64,
    st.lists(texts, max_size=2).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
)


observations = st.builds(
    Observation,
    now=seconds,
    pod=looks,
    file=files,
    history=histories,
    job=st.none() | jobs,
    progress=st.none() | progress,
    stopping_since=st.none() | seconds,
    searched=st.none() | st.builds(Searched, texts, st.lists(texts, max_size=3).map(tuple)),
)


settings_of_users = st.builds(
    Policy,
    wait=st.integers(1, 10**9).map(float),
    result_required=st.booleans(),
    at_exit=st.booleans(),
    form=st.none() | st.sampled_from(Form),
)


ROWS = set(Row)
