"""The engine's DGT step equals the NumPy reference, in every form of the paper's Table 7."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from hardwood import _native, _probes
from reference import dgt, losses
from reference.dgt import Relaxation
from reference.optimize import RMSprop

TOLERANCE = 1e-5
TILE, DEEP_TILE, DEEP = 128, 64, 9  # samples that share one mu; trees of this height have smaller

FORMS = {
    "sum, sign": Relaxation(),
    "sum, scaled": Relaxation(quantizer="scaled"),
    "product": Relaxation(path="product"),
    "product, softmax": Relaxation(path="product_softmax"),
    "sum, annealed 0.5": Relaxation(routing="annealed", sharpness=0.5),
    "sum, annealed 3": Relaxation(routing="annealed", sharpness=3.0),
    "product, annealed 0.5": Relaxation(path="product", routing="annealed", sharpness=0.5),
    "product, annealed 4": Relaxation(path="product", routing="annealed", sharpness=4.0),
    "PAT 0.5": Relaxation(path="product_softmax", routing="annealed", sharpness=0.5),
    "PAT 4": Relaxation(path="product_softmax", routing="annealed", sharpness=4.0),
}
QUANTIZED = {name: form for name, form in FORMS.items() if form.routing == "quantized"}
LINEAR = [(name, True) for name in QUANTIZED]  # annealed routing has constant leaves only
FORMS_AND_LEAVES = [(name, False) for name in FORMS] + LINEAR
each_form = pytest.mark.parametrize(("name", "linear"), FORMS_AND_LEAVES)

# parameter of the engine, options of the reference
LOSSES = {
    "squared_error": (0.0, {}),
    "absolute_error": (0.0, {}),
    "huber": (0.6, {"delta": 0.6}),
    "quantile": (0.8, {"level": 0.8}),
    "poisson": (0.0, {}),
    "logistic": (0.0, {}),
    "cross_entropy": (0.0, {}),
}
PARTS = ("loss", "dW", "db", "dTheta", "dA")


def dyadic(rng: np.random.Generator, shape, unit: float, bound: float) -> np.ndarray:
    """Multiples of a power of two: float32 dot products of them are exact.

    So the engine and the reference compute the same scores, also those at 0 and at 1, where a
    rounding error would send a sample the other way.
    """
    n = int(bound / unit)
    return (rng.integers(-n, n + 1, size=shape) * unit).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A batch and a tree. ``A`` is None for constant leaves."""

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    W: np.ndarray
    b: np.ndarray
    Theta: np.ndarray
    A: np.ndarray | None
    loss: str

    @property
    def height(self) -> int:
        return dgt.height_of(len(self.W))

    def probe(self, form: Relaxation) -> _probes.LearnerProbe:
        probe = _probes.LearnerProbe(
            "dgt",
            self.X,
            self.target,
            self.weight,
            n_outputs=self.Theta.shape[1],
            loss=self.loss,
            loss_parameter=LOSSES[self.loss][0],
            options={
                "height": self.height,
                "linear_leaves": self.A is not None,
                "path": form.path,
                "quantizer": form.quantizer,
                "routing": form.routing,
                "sharpness": (form.sharpness, form.sharpness),
                "annealing": "linear",
            },
        )
        probe.set(self.W, self.b, self.Theta, self.A)
        return probe

    def engine(self, form: Relaxation):
        return self.probe(form).gradient()

    def reference(self, form: Relaxation):
        """Take the mean loss and its gradients, tile by tile: a tile has its own mu."""
        tree = (self.W, self.b, self.Theta)
        value, options = losses.LOSSES[self.loss], LOSSES[self.loss][1]
        total, sums = 0.0, [0.0, 0.0, 0.0, 0.0]
        size = DEEP_TILE if self.height >= DEEP else TILE
        for first in range(0, len(self.X), size):
            X, y = self.X[first : first + size], self.target[first : first + size]
            share = self.weight[first : first + size].astype(np.float64) / len(self.X)
            f = dgt.forward(X, *tree, self.A, form)
            total += share @ value.value(f, y, **options)
            g = share[:, None] * value.gradient(f, y, **options)
            parts = dgt.gradients(X, *tree, g, self.A, form)
            sums = [a + b for a, b in zip(sums, parts, strict=True)]
        return total, *sums[:3], None if self.A is None else sums[3]


def target_of(loss: str, rng: np.random.Generator, n: int, K: int) -> np.ndarray:
    if loss == "cross_entropy":
        return rng.integers(0, K, size=(n, 1)).astype(np.float32)
    if loss == "logistic":
        return rng.integers(0, 2, size=(n, K)).astype(np.float32)
    if loss == "poisson":
        return rng.poisson(1.5, size=(n, K)).astype(np.float32)
    return rng.normal(size=(n, K)).astype(np.float32)


def make_case(
    height: int, n: int, d: int, K: int, loss: str = "squared_error", *, linear: bool = False
) -> Case:
    rng = np.random.default_rng([height, n, d, K, list(LOSSES).index(loss), linear])
    m, L = 2**height - 1, 2**height
    weight = rng.uniform(0.2, 2.0, size=n)
    weight[rng.random(n) < 0.2] = 0.0
    weight[0] = 1.5
    return Case(
        X=dyadic(rng, (n, d), 0.25, 2.0),
        target=target_of(loss, rng, n, K),
        weight=weight.astype(np.float32),
        W=dyadic(rng, (m, d), 0.125, 0.5),
        b=dyadic(rng, m, 0.125, 1.0),
        Theta=(0.7 * rng.normal(size=(L, K))).astype(np.float32),
        A=(rng.normal(size=(L, K, d)) / (2 * np.sqrt(d))).astype(np.float32) if linear else None,
        loss=loss,
    )


def assert_close(found, expected, tolerance: float = TOLERANCE) -> None:
    for part, a, e in zip(PARTS, found, expected, strict=True):
        if e is None:
            assert a is None, part
            continue
        a, e = np.asarray(a), np.asarray(e)
        assert a.shape == e.shape, part
        np.testing.assert_allclose(a, e, rtol=0, atol=tolerance * np.abs(e).max(), err_msg=part)


def assert_equals_the_reference(case: Case, name: str) -> None:
    form = FORMS[name]
    # In float32 a sigmoid or tanh(mu) is good to some units of its last place, of which several are
    # multiplied along a path.
    is_exact = form == Relaxation() or form.path == "product" and form.routing == "quantized"
    assert_close(case.engine(form), case.reference(form), TOLERANCE * (1.0 if is_exact else 3.0))


# Values and gradients


@each_form
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 127, 128, 129, 200])
@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 7])
def test_any_height_and_batch(height, n, name, linear):
    case = make_case(height, n, d=5, K=1, linear=linear)
    assert_equals_the_reference(case, name)


@each_form
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("height", "n", "d", "K"), [(3, 37, 6, 2), (4, 141, 3, 5)])
def test_any_loss_of_several_outputs(height, n, d, K, loss, name, linear):
    assert_equals_the_reference(make_case(height, n, d, K, loss, linear=linear), name)


@each_form
@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 16, 33, 40])
@pytest.mark.parametrize(("K", "loss"), [(1, "logistic"), (3, "cross_entropy")])
def test_any_number_of_columns(d, K, loss, name, linear):
    assert_equals_the_reference(make_case(5, 70, d, K, loss, linear=linear), name)


@pytest.mark.parametrize("loss", ["cross_entropy", "squared_error"])
@pytest.mark.parametrize("d", [16, 100])
@pytest.mark.parametrize("name", FORMS)
def test_many_outputs(name, d, loss):
    assert_equals_the_reference(make_case(5, 70, d, 10, loss), name)


@each_form
@pytest.mark.parametrize("height", [9, 10])
def test_deep_trees(height, name, linear):
    """150 rows are three tiles of 64, 64 and 22 rows, each with its own mu."""
    n = 150 if height == DEEP else 20
    case = make_case(height, n, d=4, K=2, loss="cross_entropy", linear=linear)
    assert_equals_the_reference(case, name)


def test_the_cases_hold_ties():
    """The other tests cover scores of exactly 0 and of exactly +-1."""
    case = make_case(5, 200, 5, 1)
    a = dgt.scores(case.X, case.W, case.b)
    assert (a == 0).sum() > 20
    assert (np.abs(a) == 1).sum() > 20
    assert (case.weight == 0).sum() > 20
    for case in (make_case(5, 70, 40, 3), make_case(5, 70, 100, 10)):
        a = dgt.scores(case.X, case.W, case.b)
        np.testing.assert_array_equal(a, (case.X @ case.W.T + case.b).astype(np.float64))


# What a form promises


@pytest.mark.parametrize("K", [1, 4])
@pytest.mark.parametrize("name", QUANTIZED)
@pytest.mark.parametrize("score", [0.0, -0.0, 1.0, -1.0, np.nextafter(1, 2), -np.nextafter(1, 2)])
def test_scores_on_the_edges(score, name, K):
    """A score of 0 goes right; a score of exactly +-1 still passes the gradient."""
    rng = np.random.default_rng(0)
    above_one = np.nextafter(np.float32(1), np.float32(2))
    score = np.float32(score) if abs(score) <= 1 else np.sign(score) * above_one
    case = Case(
        X=np.zeros((20, 3), np.float32),
        target=rng.normal(size=(20, K)).astype(np.float32),
        weight=np.ones(20, np.float32),
        W=np.zeros((7, 3), np.float32),
        b=np.full(7, score, np.float32),
        Theta=rng.normal(size=(8, K)).astype(np.float32),
        A=None,
        loss="squared_error",
    )
    found = case.engine(FORMS[name])
    assert_close(found, case.reference(FORMS[name]))
    on_path = [0, 2, 6] if score >= 0 else [0, 1, 3]
    pulled = range(7) if FORMS[name].path == "sum" else on_path
    assert np.flatnonzero(found[2]).tolist() == (list(pulled) if abs(score) <= 1 else [])
    reached = np.flatnonzero(found[3].any(axis=1))
    assert reached.tolist() == [7 if score >= 0 else 0]


@each_form
def test_rows_of_no_weight_do_not_pull(name, linear):
    """With the scaled quantizer they still count in mu, so their scores must be equal."""
    case = make_case(4, 30, 5, 3, "cross_entropy", linear=linear)
    X, weight = np.tile(case.X[:10], (3, 1)), case.weight.copy()
    weight[10:] = 0
    whole = replace(case, X=X, weight=weight).engine(FORMS[name])
    part = replace(case, X=X[:10], weight=weight[:10], target=case.target[:10])
    for a, e in zip(whole, part.engine(FORMS[name]), strict=True):
        if e is not None:
            np.testing.assert_allclose(np.asarray(a) * 3, e, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", QUANTIZED)
def test_linear_leaves_of_no_weight_are_constant_leaves(name):
    case = make_case(4, 50, 6, 2, "cross_entropy")
    A = np.zeros((16, 2, 6), np.float32)
    *found, dA = replace(case, A=A).engine(FORMS[name])
    *expected, nothing = case.engine(FORMS[name])
    assert nothing is None
    assert (np.asarray(dA) != 0).any()
    for part, a, e in zip(PARTS[:4], found, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-7, err_msg=part)


@pytest.mark.parametrize("s", [1.0, 30.0, 1000.0, 1e6])
@pytest.mark.parametrize("path", ["sum", "product", "product_softmax"])
def test_any_sharpness_gives_numbers(path, s):
    case = make_case(6, 70, 8, 3, "cross_entropy")
    form = Relaxation(path=path, routing="annealed", sharpness=s)
    assert all(np.isfinite(part).all() for part in case.engine(form)[:4])
    assert np.isfinite(case.probe(form).predict(soft=True)).all()


@pytest.mark.parametrize("path", ["sum", "product", "product_softmax"])
def test_linear_leaves_with_annealed_routing_are_refused(path):
    case = make_case(2, 10, 3, 1, linear=True)
    with pytest.raises(ValueError, match="linear leaves need quantized routing"):
        case.probe(Relaxation(path=path, routing="annealed"))


# Predictions


@each_form
@pytest.mark.parametrize(("height", "n", "d", "K"), [(1, 1, 1, 1), (3, 37, 6, 2), (6, 141, 40, 5)])
def test_predictions_equal_the_reference(height, n, d, K, name, linear):
    case = make_case(height, n, d, K, linear=linear)
    probe, tree = case.probe(FORMS[name]), (case.W, case.b, case.Theta, case.A)
    hard = dgt.forward(case.X, *tree)
    np.testing.assert_allclose(probe.predict(), hard, rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(probe.predict(soft=False), hard, rtol=1e-5, atol=2e-6)
    if FORMS[name].routing == "annealed":
        soft = dgt.forward(case.X, *tree, FORMS[name])
        np.testing.assert_allclose(probe.predict(soft=True), soft, rtol=1e-5, atol=1e-5)
        assert n == 1 or np.abs(soft - hard).max() > 0.01


# Steps


@each_form
def test_steps_follow_the_reference_of_rmsprop(name, linear):
    case = make_case(3, 50, 4, 1, linear=linear)
    probe = case.probe(FORMS[name])
    probe.steps(5, learning_rate=0.01)
    tree = [case.W, case.b, case.Theta, *([case.A] if linear else [])]
    tree = [part.astype(np.float64) for part in tree]
    optimizers = [RMSprop() for _ in tree]
    for _ in range(5):
        now = replace(case, W=tree[0], b=tree[1], Theta=tree[2], A=tree[3] if linear else None)
        pulls = [g for g in now.reference(FORMS[name])[1:] if g is not None]
        tree = [o.step(p, g, 0.01) for o, p, g in zip(optimizers, tree, pulls, strict=True)]
    found = [part for part in probe.parameters() if part is not None]
    for a, e in zip(found, tree, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-4)


# The layer of a network


def layer_forward(case: Case, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    prediction = np.full((len(case.X), case.Theta.shape[1]), np.nan, np.float32)
    leaf = np.full(len(case.X), -1, np.int32)
    tree = (case.W, case.b, case.Theta)
    _native.dgt_layer_forward(case.X, *tree, prediction, leaf, n_threads=n_threads)
    return prediction, leaf


def layer_backward(
    case: Case, leaf: np.ndarray, g: np.ndarray, n_threads: int, *, with_x: bool = True
) -> list[np.ndarray]:
    """Return dX, dW, db and dTheta; dX stays NaN if it is not requested."""
    tree = (case.W, case.b, case.Theta)
    dX, *rest = (np.full(part.shape, np.nan, np.float32) for part in (case.X, *tree))
    asked = dX if with_x else None
    _native.dgt_layer_backward(case.X, *tree, leaf, g, asked, *rest, n_threads=n_threads)
    return [dX, *rest]


LAYERS = [
    (1, 1, 1, 1),
    (2, 17, 3, 2),
    (4, 130, 9, 1),
    (5, 33, 40, 5),
    (7, 300, 16, 3),
    (9, 70, 4, 2),
]


@pytest.mark.parametrize(("height", "n", "d", "K"), LAYERS)
def test_the_layer_is_algorithm_2_with_the_gradient_by_its_input(height, n, d, K):
    case = make_case(height, n, d, K)
    g = np.random.default_rng(n).normal(size=(n, K)).astype(np.float32)
    a = dgt.scores(case.X, case.W, case.b)
    prediction, leaf = layer_forward(case, 1)
    np.testing.assert_array_equal(leaf, dgt.leaf_of(a))
    np.testing.assert_array_equal(prediction, case.Theta[dgt.leaf_of(a)])
    found = layer_backward(case, leaf, g, 1)
    dX = dgt.score_gradient(a, case.Theta, g) @ case.W.astype(np.float64)
    expected = dX, *dgt.backward(case.X, case.W, case.b, case.Theta, g)
    for part, x, e in zip(("dX", "dW", "db", "dTheta"), found, expected, strict=True):
        atol = 2 * TOLERANCE * np.abs(e).max()
        np.testing.assert_allclose(x, e, rtol=0, atol=atol, err_msg=part)


@pytest.mark.parametrize(("height", "n", "d", "K"), LAYERS)
def test_the_layer_answers_the_same_for_any_number_of_threads(height, n, d, K):
    case = make_case(height, n, d, K)
    g = np.random.default_rng(n).normal(size=(n, K)).astype(np.float32)
    prediction, leaf = layer_forward(case, 1)
    one = layer_backward(case, leaf, g, 1)
    for n_threads in (2, 5):
        for found, expected in zip(layer_forward(case, n_threads), (prediction, leaf), strict=True):
            np.testing.assert_array_equal(found, expected)
        for found, expected in zip(layer_backward(case, leaf, g, n_threads), one, strict=True):
            np.testing.assert_array_equal(found, expected)
    dX, *rest = layer_backward(case, leaf, g, 2, with_x=False)
    assert np.isnan(dX).all()
    for found, expected in zip(rest, one[1:], strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("n", "height", "n_outputs", "n_targets"), [(0, 2, 1, 1), (3, 0, 1, 1), (3, 2, 2, 1)]
)
def test_a_probe_checks_its_sizes_first(n, height, n_outputs, n_targets):
    X, target, weight = (np.zeros(shape, np.float32) for shape in ((n, 2), (n, n_targets), (n,)))
    options = {"height": height, "linear_leaves": False, "path": "sum", "quantizer": "sign"}
    options |= {"routing": "quantized", "sharpness": (1.0, 1.0), "annealing": "log"}
    with pytest.raises(ValueError, match="no rows|must lie between|another number"):
        _probes.LearnerProbe(
            "dgt", X, target, weight, n_outputs=n_outputs, loss="squared_error", options=options
        )
