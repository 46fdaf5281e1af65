"""The same points on every executor: the same bytes."""

from attlas import lab
from attlas.store import read

from .form import tell, times


def test_pairs_of_points_agree(fast, tmp_path):
    grid = {"i": range(times(10, 233)), "pause": [0.0]}
    kept = {}
    for executor in ("serial", "processes", "dask"):
        path = tmp_path / f"{executor}.db"
        lab.run(["test.fast"], "full", store=path, executor=executor, workers=2, grid=grid)
        kept[executor] = {r.key: r.payload for r in read(path)}
    pairs = [(kept["serial"][key], kept[other].get(key)) for other in ("processes", "dask") for key in kept["serial"]]
    apart = sum(one != other for one, other in pairs)
    tell(f"pairs of points across executors: {len(pairs)}; that differ: {apart}")
    assert not apart
