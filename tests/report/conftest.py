import pytest

from attlas import lab

from ..conftest import TESTS

# drawn, judged by the results that came with attlas; all others are on the site as not run, which takes no time
DRAWN = ["aim.quadratic-networks", "aim.softmax-threshold", "aim.gradient-descent", "trained.threshold",
         "trained.weight-decay", "features.risk-bound", "recovery.queries", "lenses.one-teacher"]  # fmt: skip


@pytest.fixture(scope="session")
def _written(tmp_path_factory):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    from attlas.report import write

    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTLAS_CLAIMS", "fast_claim")
        patch.setenv("ATTLAS_TEST_DEADLY", str(folder / "deadly"))
        patch.syspath_prepend(str(TESTS))
        lab.run(["test.fast", "aim.quadratic-networks"], "full", store=folder / "a.db", executor="serial")
        judged, other = (held(folder / "a.db", tier) for tier in ("full", "quick"))
        return folder / "a.db", judged, write(judged, folder / "site", "full", other=other).parent


def held(store, tier):
    """Return all claims, a few of them judged."""
    shipped = {entry.claim.id: entry for entry in lab.verdicts(DRAWN, tier, store=store, shipped=True, repeats=True)}
    return [shipped.get(entry.claim.id, entry) for entry in lab.verdicts(None, tier, store=store, repeats=True)]


@pytest.fixture
def results(_written):
    """A store of two claims."""
    return _written[0]


@pytest.fixture
def judged(_written):
    """What it says of all claims."""
    return _written[1]


@pytest.fixture
def site(_written):
    """The folder of its site."""
    return _written[2]
