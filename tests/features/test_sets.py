"""Sets of any size: what estimators accept, in every kind of container, with the same numbers and in little memory."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline

from attlas.errors import InputError
from attlas.features import RandomAttentionFeatures, RandomAttentionRegressor, RandomMLPFeatures, Sets, head_features
from attlas.features.constrained import ConstrainedAttentionRegressor
from attlas.features.frozen_heads import frozen_heads
from attlas.numerics import stream

D = 3


def some_sets(n=40, longest=9, seed=0, least=2):
    rng = stream(seed, "sets")
    return [rng.standard_normal((k, D)) for k in rng.integers(least, longest + 1, n)]


def padded(sets, longest=None):
    found = np.full((len(sets), longest or max(map(len, sets)), D), np.nan)
    for i, one in enumerate(sets):
        found[i, : len(one)] = one
    return found


class Awkward:
    """What a ragged array of another library looks like."""

    def __init__(self, items):
        self.items = items

    def to_list(self):
        return [one.tolist() for one in self.items]


def objects(sets):
    found = np.empty(len(sets), dtype=object)
    found[:] = sets
    return found


def masked(sets):
    array = padded(sets)
    return np.ma.masked_array(np.nan_to_num(array, nan=7.0), np.isnan(array))


KINDS = {
    "tuple": tuple,
    "nested": lambda sets: [one.tolist() for one in sets],
    "iterator": iter,
    "awkward": Awkward,
    "objects": objects,
    "padded": padded,
    "masked": masked,
    "Sets": Sets.of,
    "flat": lambda sets: padded(sets).reshape(len(sets), -1),
    "masked list": lambda sets: [np.ma.masked_array(one, np.zeros(one.shape, bool)) for one in sets],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", ["first", "mean", None])
def test_containers_are_alike(kind, query):
    """Each set by itself is the reference: a batch of one needs no padding."""
    sets = some_sets()
    token_dim = D if kind == "flat" else None
    model = RandomAttentionFeatures(7, query=query, random_state=0, token_dim=token_dim).fit(KINDS[kind](sets))
    one = RandomAttentionFeatures(7, query=query, random_state=0).fit(sets[0][None])
    alone = np.concatenate([one.transform(item[None]) for item in sets])
    np.testing.assert_allclose(model.transform(KINDS[kind](sets)), alone, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("options", [{"positions": 0.5}, {"depth": 2}, {"positions": 0.5, "depth": 2}])
@pytest.mark.parametrize("query", ["first", "mean", None])
def test_codes_and_layers_of_sets(options, query):
    sets = some_sets()
    model = RandomAttentionFeatures(5, query=query, random_state=0, **options).fit(sets)
    alone = np.concatenate([model.transform(item[None]) for item in sets])
    np.testing.assert_allclose(model.transform(sets), alone, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(model.transform(padded(sets, 9)), alone, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("options", [{"positions": 0.5}, {"depth": 2}, {"positions": 0.5, "depth": 2}, {}])
def test_pooling_is_the_average_over_queries(options):
    """Heads for (x_q; x_1..x_k) with the first token as the query, averaged over q by brute force."""
    sets = some_sets(6, least=1)
    model = RandomAttentionFeatures(5, query=None, random_state=0, **options).fit(sets)
    longest = np.zeros((1, 1 + max(map(len, sets)), D))
    first = RandomAttentionFeatures(5, random_state=0, **options).fit(longest)
    np.testing.assert_array_equal(first.heads_, model.heads_)
    expected = [np.mean([first.transform(np.vstack([x, one])[None])[0] for x in one], axis=0) for one in sets]
    np.testing.assert_allclose(model.transform(sets), expected, rtol=1e-11, atol=1e-13)
    mean = RandomAttentionFeatures(5, query="mean", random_state=0, **options).fit(sets)
    expected = [first.transform(np.vstack([one.mean(0), one])[None])[0] for one in sets]
    np.testing.assert_allclose(mean.transform(sets), expected, rtol=1e-11, atol=1e-13)


def test_a_hole_in_a_padded_array_keeps_the_places_of_the_others():
    X = padded(some_sets(8, 5, least=5))
    X[:, 2] = np.nan
    model = RandomAttentionFeatures(5, positions=1.0, random_state=0).fit(X)
    moved = X.copy()
    moved[:, [2, 3]] = X[:, [3, 2]]
    assert np.abs(model.transform(moved) - model.transform(X)).max() > 1e-3


@pytest.mark.parametrize("query", ["first", "mean", None])
def test_a_hole_in_a_set_of_a_list_keeps_the_places_of_the_others(query):
    X = padded(some_sets(8, 5, least=5))
    X[::2, 2] = np.nan
    model = RandomAttentionRegressor(5, query=query, positions=1.0, alpha=0.1, random_state=0).fit(X, np.arange(8.0))
    holed = np.ma.masked_array(np.nan_to_num(X), np.isnan(X))
    for sets in (list(X), list(holed), [one.tolist() for one in X], Sets(X.reshape(-1, D), np.arange(9) * 5)):
        np.testing.assert_array_equal(model.predict(sets), model.predict(X))
        np.testing.assert_array_equal(model.token_importance(sets), model.token_importance(X))
    with pytest.raises(InputError, match="row 0"):
        model.predict([np.full((5, D), np.nan), X[1]])


@pytest.mark.parametrize("heads", [20, "infinite"])
def test_regressors_learn_from_lists(heads):
    sets = some_sets(60)
    y = np.array([one[1:, 0].mean() for one in sets])
    model = RandomAttentionRegressor(heads, alpha=0.01, random_state=0)
    by_list, by_array = model.fit(sets, y).predict(sets), model.fit(padded(sets), y).predict(padded(sets))
    np.testing.assert_allclose(by_list, by_array, atol=1e-4 * y.std())
    assert cross_val_score(model, sets, y, cv=3).min() > 0.3
    np.testing.assert_allclose(
        cross_val_score(model, Sets.of(sets), y, cv=3), cross_val_score(model, sets, y, cv=3), rtol=1e-6
    )


def test_every_solver_and_the_constrained_regressor_take_sets():
    sets = some_sets(60)
    y = np.array([one[1:, 0].mean() for one in sets])
    models = [RandomAttentionRegressor(9, alpha=0.01, solver=s, random_state=0) for s in ("dual", "primal", "cg")]
    predicted = [model.fit(sets, y).predict(sets) for model in models]
    np.testing.assert_allclose(predicted[1:], [predicted[0]] * 2, atol=1e-3 * y.std())
    assert np.isfinite(RandomAttentionRegressor(9, solver="cg", random_state=0).fit(sets, y).predict(sets)).all()
    constrained = ConstrainedAttentionRegressor(9, radius=1.0, random_state=0)
    np.testing.assert_allclose(
        constrained.fit(sets, y).predict(sets), constrained.fit(padded(sets), y).predict(padded(sets)), atol=1e-3
    )


@pytest.mark.parametrize("query", ["first", "mean", None])
@pytest.mark.parametrize("positions", [0.0, 0.5])
def test_the_kernel_of_sets_is_the_limit_and_the_average_over_queries(query, positions):
    from attlas.features import attention_kernel

    sets, others = some_sets(7, 5), some_sets(4, 6, seed=1)
    heads = frozen_heads("infinite", Sets.of(sets), 0.3, "relu", 0, positions, 1, query)
    design = heads.on(Sets.of(sets))
    K, cross = design.gram(), design.cross(Sets.of(others))

    def asked(one):
        if query == "first":
            return one[None]
        asks = one if query is None else one.mean(0)[None]
        return np.stack([np.vstack([x, one]) for x in asks])

    def between(a, b):
        return attention_kernel(asked(a), asked(b), bias=0.3, positions=positions).mean()

    np.testing.assert_allclose(K, [[between(a, b) for b in sets] for a in sets], rtol=1e-10)
    np.testing.assert_allclose(cross, [[between(a, b) for b in sets] for a in others], rtol=1e-10)
    np.testing.assert_allclose(heads.on(padded(sets)).gram(), K, rtol=1e-10)
    M = 2000
    many = frozen_heads(M, Sets.of(sets), 0.3, "relu", 0, positions, 1, query).on(Sets.of(sets))
    Phi = np.concatenate(list(many.by_heads), axis=1).reshape(7, M, -1).astype(float)
    draws = M * np.einsum("imd,jmd->mij", Phi, Phi)
    assert np.all(np.abs(draws.mean(0) - K) < 5 * draws.std(0) / np.sqrt(M))


def test_the_kernel_where_every_token_asks_works_in_groups(monkeypatch):
    from attlas.features import set_kernel

    sets = Sets.of(some_sets(9, 6, least=1))
    whole = set_kernel.set_kernel(sets, query=None)
    events = []
    monkeypatch.setattr(set_kernel, "_ASKING", 4)
    np.testing.assert_allclose(set_kernel.set_kernel(sets, query=None, progress=events.append), whole, rtol=1e-12)
    assert (events[-1].step, events[-1].of) == (9, 9)


def test_one_long_set_among_many_short_ones_takes_little_memory():
    """5000 tokens once and 3 tokens 2000 times: the padded array alone would be 2001 x 5000 x 4 floats, 320 MB."""
    rng = stream(0, "long")
    sets = [rng.standard_normal((3, 4)) for _ in range(2000)]
    sets.insert(700, rng.standard_normal((5000, 4)))
    model = RandomAttentionFeatures(20, random_state=0).fit(sets[:2])
    tracemalloc.start()
    found = model.transform(sets)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2001 * 5000 * 4 * 8 / 20
    for i in (0, 700, 2000):
        np.testing.assert_allclose(found[i], model.transform(sets[i][None])[0], rtol=1e-10, atol=1e-13)


def test_pooling_never_holds_all_pairs_of_tokens():
    rng = stream(0, "long")
    sets = [rng.standard_normal((600, 2)), rng.standard_normal((2, 2))]
    model = RandomAttentionFeatures(30, query=None, random_state=0).fit(sets)
    tracemalloc.start()
    model.transform(sets)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 600 * 600 * 30 * 8 / 5


def test_buckets_waste_at_most_a_quarter_and_hold_each_set_once():
    lengths = np.concatenate([[5000, 4000, 1], np.arange(1, 300), np.full(50, 7)])
    sets = Sets(np.ones((lengths.sum(), 2)), np.concatenate([[0], np.cumsum(lengths)]))
    parts = list(sets.buckets(numbers=1000))
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(lengths)))
    for rows in parts:
        size = len(rows) * lengths[rows].max()
        assert size - lengths[rows].sum() <= 0.25 * size
        assert len(rows) == 1 or 2 * size <= 1000


def test_indexing_sets():
    sets = some_sets(10)
    made = Sets.of(sets)
    for key in (slice(2, 7), slice(None, None, -2), [3, 3, 0], np.arange(10) % 2 == 0, np.array([9, -1])):
        expected = objects(sets)[key]
        assert len(made[key]) == len(expected)
        for one, other in zip(made[key], expected, strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(made[-1], sets[-1])
    np.testing.assert_array_equal(made.padded([1, 4]), padded([sets[1], sets[4]]))
    train, test = train_test_split(made, random_state=0)
    assert (len(train), len(test)) == (7, 3)
    with pytest.raises(IndexError):
        made[10]


@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.parametrize("query", ["first", None])
def test_threads_make_the_same_numbers(n_jobs, query, monkeypatch):
    monkeypatch.setattr(head_features, "PIECE", 11)
    monkeypatch.setattr(head_features, "NUMBERS", 100)
    monkeypatch.setattr(head_features, "HEADS", 4)
    sets = some_sets(50)
    for X in (sets, np.stack([one[:2] for one in sets])):
        model = RandomAttentionFeatures(9, query=query, random_state=0).fit(X)
        expected = model.transform(X)
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).transform(X), expected)


def test_single_precision_stays():
    sets = [one.astype(np.float32) for one in some_sets()]
    for X in (sets, padded(sets).astype(np.float32), Sets.of(sets), np.stack([one[0] for one in sets])):
        for depth in (1, 2):
            found = RandomAttentionFeatures(5, depth=depth, random_state=0).fit_transform(X)
            assert found.dtype == np.float32
            double = RandomAttentionFeatures(5, depth=depth, random_state=0, dtype="float64").fit_transform(X)
            assert double.dtype == np.float64
            np.testing.assert_allclose(found, double, rtol=1e-4, atol=1e-5)
    assert RandomAttentionFeatures(5).fit_transform([*sets, np.ones((2, D))]).dtype == np.float64
    assert RandomAttentionFeatures(5).fit_transform(np.ones((4, 3, 2), dtype=int)).dtype == np.float64


def test_sets_of_one_size_are_an_array():
    """No bucket is made, and no bit differs."""
    X = np.stack(some_sets(20, 5, least=5))
    model = RandomAttentionFeatures(5, random_state=0)
    np.testing.assert_array_equal(model.fit_transform(list(X)), model.fit_transform(X))
    assert isinstance(model._sequences(list(X), reset=False), np.ndarray)
    assert isinstance(model._sequences(some_sets(), reset=False), Sets)


def test_pipelines_with_lists():
    sets = some_sets(60, least=1)
    y = np.array([one[:, 0].mean() for one in sets])
    pipeline = make_pipeline(RandomAttentionFeatures(30, query=None, random_state=0), Ridge(1e-3))
    assert cross_val_score(pipeline, sets, y, cv=3).min() > 0.5


SETS = some_sets()
PARTLY = np.ma.masked_array(np.ones((4, 3, D)), np.arange(D) == 1 + np.zeros((4, 3, 1)))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([*SETS, np.empty((0, D))], "set 40 is empty"),
        ([*SETS, []], "set 40 is empty"),
        ([[], []], "set 0 is empty"),
        ([*SETS, np.ones((2, 5))], "set 40 has tokens of dimension 5, set 0 of dimension 3"),
        ([*SETS, np.ones(D)], r"set 40 must have shape \(tokens, d\); got \(3,\)"),
        ([np.ones(D), *SETS], r"set 0 must have shape \(tokens, d\); got \(3,\)"),
        ([*SETS, "abc"], r"set 40 must"),
        ([*SETS, [["a", "b", "c"]]], "set 40 must be an array of numbers"),
        ([*SETS, None], "set 40 must"),
        ([*SETS, [[1.0, 2.0, 3.0], [1.0]]], "set 40 must be .* unequal length"),
        ([*SETS, np.full((2, D), np.inf)], "set 40 has infinite entries"),
        ([*SETS, np.array([[1, 2, 3], [1, np.nan, 3.0]])], "set 40 has a token that is NaN in part"),
        ([*SETS, np.full((2, D), np.nan)], "set 40 has a missing query"),
        ([*SETS, np.array([[1, 2, 3], [np.nan] * 3])], "set 40 has the query token only"),
        ([*SETS, np.ones((1, D))], "set 40 has the query token only"),
        ([*SETS, np.ones((1, D))], "sets without a query every token asks with query=None"),
        ([*SETS, 1j * np.ones((2, D))], "set 40 must be real"),
        ([SETS], "set 0 must"),
        ([*SETS, sparse.csr_array(np.eye(3))], "set 40 is sparse"),
        (sparse.csr_array(np.eye(3)), "X is sparse"),
        ([[1.0, 2.0], [1.0]], "rows of unequal length; give a list of arrays"),
        (["a", "b"], "X must be numbers"),
        ([["a", "b"]], "X must be numbers"),
        (PARTLY, "masked in part"),
        (list(PARTLY), "set 0 has a token that is masked in part"),
        ([[np.ma.masked_array([1.0, 2.0], [True, False])] * 2] * 3, "set 0 is masked"),
        ([np.ma.masked_array([1.0, 2.0], [True, False])] * 3, "X is masked"),
        (np.ma.masked_array(np.ones((4, 3)), np.eye(4, 3) > 0), "X is masked"),
        (np.ones((3, 2, 2, 2)), "must have shape"),
    ],
)  # fmt: skip
def test_bad_sets_are_one_sentence(X, message):
    with pytest.raises(InputError, match=message):
        RandomAttentionFeatures(5).fit(X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomAttentionFeatures(5, query="last").fit(SETS), "query must be 'first', 'mean', or None"),
        (lambda: RandomAttentionFeatures(5, n_jobs=0).fit(SETS), "n_jobs must be"),
        (lambda: RandomAttentionFeatures(5, token_dim=2).fit(SETS), "token_dim says 2"),
        (lambda: RandomAttentionFeatures(5).fit(SETS).transform([np.ones((2, 4))] * 2), "the model was made for 3"),
        (lambda: RandomAttentionFeatures(5, positions=1.0).fit(SETS).transform([np.ones((20, D)), SETS[0]]), "19 keys"),
        (lambda: RandomMLPFeatures(5).fit(SETS), "sets of 2 to 9 tokens"),
        (lambda: RandomMLPFeatures(5).fit(padded(SETS)[:, :2]).transform(SETS), "sets of 2 to 9 tokens"),
        (lambda: RandomAttentionFeatures(5, query=None).fit([*SETS, np.full((2, D), np.nan)]), "set 40 has no token left"),
        (lambda: RandomAttentionFeatures(5, query=None).fit(np.full((2, 2, D), np.nan)), "no token left at row 0"),
        (lambda: Sets(np.ones((4, 2)), [0, 4, 2]), "offsets must increase from 0 to 4"),
        (lambda: Sets(np.ones((4, 2)), [0.0, 4.0]), "offsets must be n"),
        (lambda: Sets(np.ones(4), [0, 4]), "tokens must be floats"),
        (lambda: Sets.of([]), "no sets"),
        (lambda: Sets.of(SETS)[[]], "no set at all"),
        (lambda: RandomAttentionRegressor(5).fit(SETS, np.ma.masked_array(np.ones(40), np.arange(40) > 3)), "y is masked"),
        (lambda: RandomAttentionRegressor(5, alphas=np.ma.masked_array([1.0, 2], [0, 1])).fit(SETS, np.ones(40)), "masked"),
    ],
)  # fmt: skip
def test_bad_use_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("kind", [bool, object, int, np.float32])
def test_masked_rows_of_any_kind_lack_tokens(kind):
    rows = stream(0, "masked rows").integers(0, 2, size=(30, 6))
    gone = np.zeros((30, 6), dtype=bool)
    gone[::2, 4:] = True
    single = np.float32 if kind is np.float32 else float
    expected = RandomAttentionFeatures(4, query=None, token_dim=2, random_state=0).fit_transform(
        np.where(gone, np.nan, rows).astype(single)
    )
    given = np.ma.masked_array(rows.astype(kind), gone)
    found = RandomAttentionFeatures(4, query=None, token_dim=2, random_state=0).fit_transform(given)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
    with pytest.raises(InputError, match="X must be numbers"):
        RandomAttentionFeatures(4, token_dim=2).fit(np.ma.masked_array(rows.astype(str), gone))


def test_predictions_of_single_precision_in_any_container():
    sets = [one.astype(np.float32) for one in some_sets()]
    model = RandomAttentionRegressor(4, alpha=0.1, random_state=0).fit(sets, np.arange(len(sets)) % 3)
    objects = np.empty(len(sets), dtype=object)
    objects[:] = sets
    pandas = pytest.importorskip("pandas")
    for given in (objects, pandas.Series(sets), iter(sets), tuple(sets)):
        assert model.predict(given).dtype == np.float32
    objects[0] = objects[0].astype(float)
    assert model.predict(objects).dtype == np.float64


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "X has no sets or rows"),
        (iter([]), "X has no sets or rows"),
        ([[]] * 40, "set 0 is empty"),
        (None, "X is None; give a list of arrays"),
        (3.0, "X has no axis"),
        (np.ones(40), "X has one axis"),
        ({"a": 1}, "X is {'a': 1}; give a list of arrays"),
        ([{"a": 1}] * 40, "X must be numbers"),
        (np.empty((0, 3)), "0 sample"),
    ],
)
def test_what_is_no_set_is_one_sentence(X, message):
    for model in (RandomAttentionRegressor(3), RandomAttentionFeatures(3)):
        with pytest.raises(InputError, match=message):
            model.fit(X, np.ones(40))
    rows = RandomAttentionRegressor(3, random_state=0).fit(np.ones((40, 3)), np.arange(40))
    with pytest.raises(InputError, match=message):
        rows.predict(X)


def test_a_table_of_sets_is_one_sentence():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="column 'a' holds sets; give the column"):
        RandomAttentionFeatures(3).fit(pandas.DataFrame({"a": some_sets()}))


def test_one_set_is_no_table_of_rows():
    for X in (some_sets(), np.ones((40, 2, D))):
        model = RandomAttentionRegressor(3, alpha=0.1, random_state=0).fit(X, np.arange(40))
        with pytest.raises(InputError, match=r"X has two axes, .* \[X\] for one"):
            model.predict(X[0])
        assert model.predict([X[0]]).shape == (1,)
    assert model.fit(np.ones((40, D)), np.arange(40)).predict(np.ones((5, D))).shape == (5,)


def test_rows_of_an_iterator():
    rows = stream(0, "rows").normal(size=(20, 3))
    found = RandomAttentionFeatures(3, random_state=0).fit(row for row in rows).transform(iter(rows))
    np.testing.assert_array_equal(found, RandomAttentionFeatures(3, random_state=0).fit_transform(rows))
