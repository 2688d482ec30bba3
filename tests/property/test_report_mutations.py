"""Damaged reports of every format: each has an outcome, none is more than its own verdict."""

import pytest
import yaml

from reporter.results.items import lines
from reporter.run.results import ResultStatus, verdict_of
from tests.property.damaged import mutations
from tests.unit.results.scene import read

SEEDS = {
    "junit": (
        b'<testsuites><testsuite name="a"><testcase name="b" classname="c"/><testcase name="d">'
        b'<failure message="e">f</failure></testcase></testsuite></testsuites>',
        b'<?xml version="1.0" encoding="utf-8"?><!DOCTYPE x><testsuite><testcase><skipped/>'
        b"<system-out><![CDATA[&<]]></system-out></testcase><testsuite/></testsuite>",
    ),
    "gojson": (
        b'{"Action":"run","Test":"A","Package":"p"}\n{"Action":"output","Test":"A","Package":"p",'
        b'"Output":"x"}\n{"Action":"fail","Test":"A","Package":"p"}\n{"Action":"fail"}\n',
    ),
    "manual": (
        b"name: a\nitems:\n- name: b\n  status: passed\n  details: &d {c: [1, ~, 2.5], e: yes}\n"
        b"- name: f\n  items: [{status: failed, details: *d}]\n---\n- g\n",
    ),
}
TOKENS = (
    b"<", b">", b"</", b"/>", b"&", b"&#0;", b"<![CDATA[", b"<!--", b"<testsuite>", b"</testsuite>",
    b"<testcase>", b"</testcase>", b"<!ENTITY x 'y'>", b"{", b"}", b"[", b"]", b'"', b"\\", b"\n",
    b"\\ud800", b"\xff", b"\x00", b"*d", b"&d ", b": ", b"- ",
    b"!!python/object:os.system ", b"1e999",
    b"%YAML 1.2\n", b"? ", b"|\n ", b"\xe2\x80\xa8",
    b'"Action":', b"null", b"9" * 5000,
)  # fmt: skip


@pytest.mark.parametrize("result_format", SEEDS)
@pytest.mark.parametrize(
    ("seed", "count"), [(0, 1_000), pytest.param(1, 199_000, marks=pytest.mark.long)]
)
def test_every_report_has_an_outcome(result_format, seed, count):
    """Whatever is in it: counts, a verdict, and YAML that others can read."""
    damaged = mutations(SEEDS[result_format], TOKENS, seed, count, copied=60)
    for number, data in enumerate(damaged):
        found = read(result_format, data, piece=max(1, len(data) // 2))
        item = found.item
        assert item.counts, data
        assert verdict_of(item.counts) in set(ResultStatus)
        assert (found.note == "") == ("error" not in item.meta), data
        if found.note:
            assert "passed" != verdict_of(item.counts), data
        if number % 500 == 0:
            (written,) = yaml.safe_load("".join(lines(item, 0, counted=False)))
            assert "r" == written["name"], data
