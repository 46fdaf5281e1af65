import pytest

from attlas import lab
from attlas.report import write

from ..conftest import TESTS


@pytest.fixture(scope="session")
def _written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTLAS_CLAIMS", "fast_claim")
        patch.setenv("ATTLAS_TEST_DEADLY", str(folder / "deadly"))
        patch.syspath_prepend(str(TESTS))
        lab.run(["test.fast", "aim.quadratic-networks"], "full", store=folder / "a.db", executor="serial")
        options = {"store": folder / "a.db", "shipped": True}
        judged = lab.verdicts(None, "full", repeats=True, **options)
        other = lab.verdicts(None, "quick", **options)
        return folder / "a.db", judged, write(judged, folder / "site", "full", other=other).parent


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
