"""The faults of tests/faults.py can be planted: what they replace is there, once."""

from __future__ import annotations

import re

import pytest

from faults import FAULTS, ROOT, changed


def test_there_are_twenty_in_as_many_places():
    assert len({(fault.file, fault.right) for fault in FAULTS}) >= 20
    assert len({fault.file.split("/")[2] for fault in FAULTS if "hardwood" in fault.file}) >= 9


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted_and_its_tests_exist(fault):
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert changed(fault, text) != text
    assert any((ROOT / test).exists() for test in fault.tests)


def test_the_page_names_tests_that_exist():
    page = (ROOT / "docs" / "design" / "0009-checks.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)", page)
    assert len(named) > 10
    missing = [
        (file, test)
        for file, test in named
        if f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert not missing
