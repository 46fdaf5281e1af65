import csv
import json

import numpy as np
import pandas
import pytest
import xarray

from attlas.errors import InputError
from attlas.store import Record, encode, export, view


def made(i, seed=0, **result):
    return Record("test.made", 1, {"d": i, "law": "x"}, seed, encode(result), 0.1, {"attlas": "0"})


RECORDS = [
    made(i, seed, value=float(i + seed), curve=np.arange(3.0) + i, label=f"r{i}") for i in (1, 2) for seed in (0, 1)
]


def test_csv(tmp_path):
    assert export(RECORDS, tmp_path / "a.csv") == 4
    table = pandas.read_csv(tmp_path / "a.csv")
    assert list(table["point.d"]) == [1, 1, 2, 2]
    assert list(table["result.value"]) == [1, 2, 2, 3]
    assert json.loads(table["result.curve"][2]) == [2, 3, 4]
    assert table["key"][0] == RECORDS[0].key
    assert sorted(tmp_path.iterdir()) == [tmp_path / "a.csv"]


def test_csv_is_exact(tmp_path):
    x = 0.1 + 0.2
    export([made(1, value=x)], tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="") as file:
        assert float(next(csv.DictReader(file))["result.value"]) == x


def test_parquet(tmp_path):
    export(RECORDS, tmp_path / "a.parquet")
    table = pandas.read_parquet(tmp_path / "a.parquet")
    assert list(table["result.curve"][3]) == [2, 3, 4]
    assert table["result.value"].dtype == np.float64


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_awkward_results(tmp_path, name):
    """Names that columns have already, complex numbers, large integers, shapes and kinds that differ."""
    awkward = [
        made(1, seed=7, claim="mine", seconds=2.5, z=np.array([1 + 2j]), big=np.uint64(2**63), shape=np.zeros((2, 2))),
        made(2, claim="mine", seconds=1.5, z=np.array([1j]), big=np.uint64(1), shape=1.0, other="text"),
        made(3, claim="mine", seconds=1.5, z=2j, big=np.uint64(1), shape=np.zeros(3), other=4.0),
    ]
    assert export(awkward, tmp_path / name) == 3
    table = pandas.read_csv(tmp_path / name) if name.endswith("csv") else pandas.read_parquet(tmp_path / name)
    assert list(table["claim"]) == ["test.made"] * 3
    assert list(table["result.claim"]) == ["mine"] * 3
    assert list(table["seed"]) == [7, 0, 0]


def test_netcdf_has_a_group_per_claim(tmp_path):
    other = Record("test.other", 2, {"n": 1}, 0, encode({"z": 4.0}), 0.1, {"attlas": "0"})
    assert export([*RECORDS, other], tmp_path / "a.nc") == 5
    with xarray.open_dataset(tmp_path / "a.nc", group="test.made-v1", engine="h5netcdf") as data:
        np.testing.assert_array_equal(data["curve"].values, view(RECORDS)["curve"].values)
        assert list(data["label"].values) == ["r1", "r1", "r2", "r2"]
    with xarray.open_dataset(tmp_path / "a.nc", group="test.other-v2", engine="h5netcdf") as data:
        assert float(data["z"][0]) == 4.0


def test_view():
    data = view(RECORDS)
    assert data["curve"].dims == ("result", "curve_0")
    assert list(data["law"].values) == ["x"] * 4
    grid = data.set_index(result=["d", "seed"]).unstack()
    assert float(grid["value"].sel(d=2, seed=1)) == 3


def test_view_pads_ragged_arrays():
    data = view([made(1, curve=np.arange(2.0)), made(2, curve=np.arange(3.0))])
    np.testing.assert_array_equal(data["curve"].values, [[0, 1, np.nan], [0, 1, 2]])


def test_view_marks_what_is_missing():
    data = view([made(1, value=1.0, label="a"), made(2, curve=np.arange(2.0))])
    np.testing.assert_array_equal(data["value"].values, [1.0, np.nan])
    np.testing.assert_array_equal(data["curve"].values, [[np.nan, np.nan], [0, 1]])
    assert list(data["label"].values) == ['"a"', ""]


def test_bad(tmp_path):
    with pytest.raises(InputError, match="one claim"):
        view([])
    with pytest.raises(InputError, match=r"\.csv, \.parquet, \.nc"):
        export(RECORDS, tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="no results"):
        export([], tmp_path / "a.csv")
    with pytest.raises(InputError, match="folder that exists"):
        export(RECORDS, tmp_path / "no" / "a.csv")
