import csv
import json
import os

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


def test_netcdf_opens_as_it_is(tmp_path):
    """One claim is one file, without a group that a reader would have to know."""
    assert export(RECORDS, tmp_path / "a.nc") == 4
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as data:
        np.testing.assert_array_equal(data["curve"].values, view(RECORDS)["curve"].values)
        assert list(data["label"].values) == ["r1", "r1", "r2", "r2"]
        assert data["d"].dtype.kind == "i"


def test_netcdf_of_several_claims_is_a_file_each(tmp_path):
    other = Record("test.other", 2, {"n": 1}, 0, encode({"z": 4.0}), 0.1, {"attlas": "0"})
    last = Record("test.other", 3, {"n": 1}, 0, encode({"z": 5.0}), 0.1, {"attlas": "0"})
    assert export([*RECORDS, other, last], tmp_path / "a.nc") == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.test.made-v1.nc", "a.test.other-v2.nc", "a.test.other-v3.nc"
    ]  # fmt: skip
    with xarray.open_dataset(tmp_path / "a.test.other-v3.nc", engine="h5netcdf") as data:
        assert float(data["z"][0]) == 5.0


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_integers_stay_integers_where_another_claim_has_no_such_setting(tmp_path, name):
    other = Record("test.other", 2, {"n": 7}, 0, encode({"count": 3}), 0.1, {"attlas": "0"})
    export([*RECORDS, other], tmp_path / name)
    if name.endswith("csv"):
        with open(tmp_path / name, newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["point.d"] for row in rows] == ["1", "1", "2", "2", ""]
        assert [row["result.count"] for row in rows] == ["", "", "", "", "3"]
    else:
        table = pandas.read_parquet(tmp_path / name, dtype_backend="numpy_nullable")
        assert table["point.d"].dtype == "Int64"
        assert table["point.n"][4] == 7


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＠SUM(A1)"])
def test_no_cell_of_csv_is_a_formula(tmp_path, text):
    hostile = Record("test.made", 1, {"law": text}, 0, encode({"label": text, "x": -1.5}), 0.1, {"attlas": text})
    export([hostile], tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["point.law"] == row["result.label"] == ("\\r=1" if text[0] == "\r" else "'" + text)
    assert float(row["result.x"]) == -1.5  # numbers are numbers


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
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="pipe or device, not a file"):
        export(RECORDS, tmp_path / "pipe.csv")
    assert not (tmp_path / "pipe.csv").is_file()


@pytest.mark.parametrize(
    ("point", "result"),
    [
        ({"d": 2**65}, {"x": 1.0}),
        ({"d": [1, 2**65]}, {"x": 1.0}),
        ({"d": None}, {"x": 1.0}),
        ({"d": [None]}, {"x": 1.0}),
        ({"d": {"a": [1, {"b": None}]}}, {"x": 1.0}),
        ({"d": 1}, {"x": np.uint64(2**64 - 1)}),
        ({"d": 1}, {"x": np.array([2**64 - 1, 1], np.uint64)}),
        ({"d": "\ud800"}, {"x": 1.0}),
        ({"d": "a\0b"}, {"x": 1.0}),
        ({"d": ["\ud800"]}, {"x": np.array(["\udfff", "good"])}),
        ({"d": 1}, {"x": "\ud800"}),
        ({"d": 1}, {"x": np.array([1 + 2j])}),
        ({"d": 1}, {"x": 1 + 2j}),
        ({"d": 1}, {"x": np.array([1.5], np.float16)}),
        ({"d": 1}, {"x": np.array([True])}),
        ({"d": 1}, {"x": np.zeros((0, 3))}),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet", "nc"])
def test_every_value_that_a_store_accepts_can_be_exported(tmp_path, point, result, ending):
    odd = Record("test.made", 1, point, 0, encode(result), 0.1, {"attlas": "0"})
    assert export([odd], tmp_path / f"alone.{ending}") == 1
    assert export([odd, made(3, x=2.0)], tmp_path / f"mixed.{ending}") == 2


def test_integers_beyond_64_bits_are_exact(tmp_path):
    odd = Record("test.made", 1, {"d": 2**65}, 0, encode({"x": np.uint64(2**64 - 1)}), 0.1, {"attlas": "0"})
    export([odd, made(3, x=-1)], tmp_path / "a.parquet")
    table = pandas.read_parquet(tmp_path / "a.parquet")
    assert list(map(int, table["point.d"])) == [2**65, 3]
    assert list(map(int, table["result.x"])) == [2**64 - 1, -1]
    data = view([odd, made(3, x=-1)])
    assert list(map(int, data["d"].values)) == [2**65, 3]
    assert list(map(int, data["x"].values)) == [2**64 - 1, -1]


def test_a_number_in_a_csv_is_a_number_whatever_else_is_in_its_column(tmp_path):
    points = [{"d": -1}, {"d": "none"}, {"d": -0.5}, {"d": "-1"}, {"d": [-1]}]
    rows = [Record("test.made", 1, point, 0, encode({"x": 1.0}), 0.1, {"attlas": "0"}) for point in points]
    export(rows, tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="") as file:
        assert [row["point.d"] for row in csv.DictReader(file)] == ["-1", "none", "-0.5", "'-1", "[-1]"]
