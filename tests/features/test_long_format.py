"""Sets from tables with one row to a token."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.features import RandomAttentionFeatures, sets_from_long

TABLE = {
    "id": ["b", "a", "b", "c", "a", "b"],
    "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "y": [0, 1, 0, 1, 0, 1],
    "time": [3, 2, 1, 0, 1, 2],
    "name": ["p", "q", "r", "s", "t", "u"],
}
GIVEN = {"b": [[1, 0], [3, 0], [6, 1]], "a": [[2, 1], [5, 0]], "c": [[4, 1]]}
IN_TIME = {"b": [[3, 0], [6, 1], [1, 0]], "a": [[5, 0], [2, 1]], "c": [[4, 1]]}


def columns(table):
    return {name: np.array(column) for name, column in table.items()}


def frame(table):
    return pytest.importorskip("pandas").DataFrame(table, index=range(10, 16))


def categories(table):
    return frame(table).assign(id=lambda made: made["id"].astype("category"))


@pytest.mark.parametrize("kind", [dict, columns, frame, categories])
@pytest.mark.parametrize(("order", "expected"), [(None, GIVEN), ("time", IN_TIME)])
def test_rows_become_sets(kind, order, expected):
    sets, ids = sets_from_long(kind(TABLE), "id", ["x", "y"], order)
    assert ids.tolist() == ["b", "a", "c"]
    assert [one.tolist() for one in sets] == list(expected.values())
    assert RandomAttentionFeatures(3, query=None).fit_transform(sets).shape == (3, 9)


def test_ids_of_any_kind():
    for ids in (
        [3, 1, 3],
        np.array(["2020-01-02", "2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
        [(1, 2), "x", (1, 2)],
    ):
        column = np.empty(3, dtype=object) if isinstance(ids[1], str) else ids
        column[:] = ids
        sets, found = sets_from_long({"id": column, "x": [1.0, 2.0, 3.0]}, "id", "x")
        assert [one.ravel().tolist() for one in sets] == [[1.0, 3.0], [2.0]]
        assert list(found) == [ids[0], ids[1]]


def test_single_precision_stays():
    columns = {"id": [1, 1, 2], "x": np.ones(3, np.float32), "z": np.zeros(3, np.float32)}
    assert sets_from_long(columns, "id", ["x", "z"])[0].dtype == np.float32
    assert sets_from_long(columns | {"z": [1, 2, 3]}, "id", ["x", "z"])[0].dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "tokens", "order", "message"),
    [
        ({"id": ["a", None, "b", "c", "a", "b"]}, ["x"], None, "column 'id' has no id at row 1"),
        ({"id": [1.0, 2.0, np.nan, 1.0, 1.0, 1.0]}, ["x"], None, "column 'id' has no id at row 2"),
        ({"id": [[], 1, 2, 3, 4, 5]}, ["x"], None, "column 'id' must"),
        ({}, ["x", "z"], None, "frame has no column 'z'; it has .'id', 'x'"),
        ({}, ["x"], "date", "frame has no column 'date'"),
        ({}, ["x", ["y"]], None, "frame has no column"),
        ({}, ["name"], None, "column 'name' must be numbers"),
        ({"x": np.array(["1", "2", 3, 4, 5, 6], dtype=object)}, ["x"], None, "column 'x' must be numbers"),
        ({"x": [1.0, 2.0, 3.0, np.nan, 5.0, 6.0]}, ["y", "x"], None, "column 'x' is nan at row 3, in set 'c'"),
        ({"x": [1.0, np.inf, 3.0, 0.0, 5.0, 6.0]}, ["x"], None, "column 'x' is inf at row 1, in set 'a'"),
        ({"x": np.ma.masked_array(np.ones(6), np.arange(6) > 4)}, ["x"], None, "column 'x' is masked"),
        ({"time": [1.0, 2.0, 3.0, np.nan, 5.0, 6.0]}, ["x"], "time", "the column 'time' of the order has missing"),
        ({"time": [1, "a", 2, 3, 4, 5]}, ["x"], "time", "column 'time' must have entries of one kind; got 1 and 'a'"),
        ({"time": np.array([1, "a", 2, 3, 4, 5], dtype=object)}, ["x"], "time", "'time' of the order cannot be sorted"),
        ({"time": ["a", None, "b", "c", "d", "e"]}, ["x"], "time", "'time' of the order has missing"),
        ({"time": [1.0, 2.0]}, ["x"], "time", "'time' of the order has missing values, or another length"),
        ({"id": ["a", np.nan, "b", "c", "a", "b"]}, ["x"], None, "column 'id' has no id at row 1"),
        ({"id": ["a", "b", np.datetime64("NaT"), "c", "a", "b"]}, ["x"], None, "column 'id' has no id at row 2"),
        ({"id": [1, "a", 2, 3, 4, 5]}, ["x"], None, "column 'id' must have entries of one kind; got 1 and 'a'"),
        ({"id": [True, 1, 2, 3, 4, 5]}, ["x"], None, "column 'id' must have entries of one kind"),
        ({"x": [1.0]}, ["x"], None, "columns of one length"),
        ({}, [], None, "tokens names no column"),
        ({}, 3, None, "tokens must be the names of columns"),
    ],
)  # fmt: skip
def test_bad_tables_are_one_sentence(changes, tokens, order, message):
    with pytest.raises(InputError, match=message):
        sets_from_long(TABLE | changes, "id", tokens, order)


def test_a_frame_with_missing_ids():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": pandas.array([1, None, 2], dtype="Int64"), "x": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="no id at row 1"):
        sets_from_long(frame, "id", ["x"])
    with pytest.raises(InputError, match="frame must be a DataFrame"):
        sets_from_long([1, 2], "id", ["x"])


def test_missing_ids_of_pandas_in_a_list():
    pandas = pytest.importorskip("pandas")
    for gone in (pandas.NA, pandas.NaT):
        for column in (["a", gone, "b"], [1, gone, 2], np.array(["a", gone, "b"], dtype=object)):
            with pytest.raises(InputError, match="no id at row 1"):
                sets_from_long({"id": column, "x": [1.0, 2.0, 3.0]}, "id", "x")


def test_an_order_of_anything_that_sorts():
    pandas = pytest.importorskip("pandas")
    days = ["2020-03-01", "2020-01-02", "2020-02-01"]
    sizes = pandas.Series(pandas.Categorical(["large", "small", "medium"], ["small", "medium", "large"], ordered=True))
    for order in (
        days,
        np.array(days),
        np.array(days, dtype="datetime64[D]"),
        np.array(days, dtype="datetime64[D]").tolist(),
        pandas.Series(pandas.to_datetime(days)),
        pandas.Series(pandas.to_datetime(days)).dt.tz_localize("UTC"),
        [2**60 + 2, 2**60, 2**60 + 1],  # of which float64 sees no difference
        sizes,
    ):
        sets, _ = sets_from_long({"id": [1, 1, 1], "x": [1.0, 2.0, 3.0], "when": order}, "id", "x", "when")
        assert sets[0].ravel().tolist() == [2.0, 3.0, 1.0]


def test_a_table_of_arrow():
    arrow = pytest.importorskip("pyarrow")
    sets, ids = sets_from_long(arrow.table({"id": ["b", "a", "b"], "x": [1.0, 2.0, 3.0]}), "id", "x")
    assert (ids.tolist(), sets[0].tolist()) == (["b", "a"], [[1.0], [3.0]])
    with pytest.raises(InputError, match="no id at row 1"):
        sets_from_long(arrow.table({"id": ["b", None, "b"], "x": [1.0, 2.0, 3.0]}), "id", "x")
    with pytest.raises(InputError, match=r"no column 'set'; it has \['id'\]"):
        sets_from_long(arrow.table({"id": [1]}), "set", "id")
