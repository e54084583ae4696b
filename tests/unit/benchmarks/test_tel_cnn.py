"""The networks of Table 4 of the TEL paper have its numbers of parameters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.quality import tel_cnn  # noqa: E402


@pytest.mark.parametrize(("name", "kind"), tel_cnn.PRINTED)
def test_printed_networks_have_the_papers_parameters(name, kind):
    model = tel_cnn.printed_network(name, kind, tel_cnn.drawn_printed(name, kind, 0))
    assert tel_cnn.keras_count(model) == tel_cnn.PAPER[name, kind]["parameters"]


def test_other_sizes_are_refused():
    setting = tel_cnn.drawn_printed("mnist", "tel", 0) | {"n_trees": 47}
    with pytest.raises(ValueError, match=r"mnist, CNN-tel: 698,465 parameters.* 699,585"):
        tel_cnn.printed_network("mnist", "tel", setting)
