"""Updates and JSON of every kind, as a run may be told them."""

from hypothesis import strategies as st

from reporter.errors import InvalidPayload
from reporter.run.plan import PlanError
from reporter.run.progress import INT64_MAX, INT64_MIN, KEPT, Progress

START = 1_767_225_600.0


int64 = st.integers(INT64_MIN, INT64_MAX)


texts = st.text(max_size=30) | st.just("x" * 2_000) | st.just("é" * 1_500) | st.just("\ud800")


# Lists that reach the bound are one text many times, or building them would take all the time.
names = st.lists(texts, max_size=4).map(tuple) | st.builds(
    lambda text, times: (text,) * times, texts, st.sampled_from([KEPT - 1, KEPT, KEPT + 1])
)


updates = st.builds(
    Progress,
    msg=texts,
    total=int64,
    completed=int64,
    failures=names,
    errors=names,
    appendtotals=st.booleans(),
    appendcompleted=st.integers(0, 9) | st.integers(0, INT64_MAX) | int64,
    appendfailing=names,
)


def tried(read, given_value):
    """What was read, and the refusal instead; any other exception is a fault."""
    try:
        return read(given_value), None
    except (InvalidPayload, PlanError) as refused:
        return None, refused


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
