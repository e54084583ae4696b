"""The page of a frontier: slide from size to size; drawing, score and predictions follow."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from forests import make_forest
from hardwood import TreeClassifier, TreeRegressor
from hardwood.show.page import Page, show
from hardwood.text.numbers import format_number
from pages import SIZES, THEMES, UNNAMED, content_in
from trees import make_rows, make_tree

QUICK = {"time_limit": None, "max_trials": 4, "random_state": 0, "teacher": None}
N_ROWS = 160


def table():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
    X["city"] = rng.choice(["Rome", "Łódź", "Oslo"], N_ROWS)
    X["joined"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N_ROWS), "D")
    X.loc[rng.random(N_ROWS) < 0.2, "c"] = np.nan
    late = (X["joined"] > "2021-01-01").to_numpy()
    y = np.where(late, 2 * X["a"], -3 * X["b"]) + (X["city"] == "Rome")
    return X, np.asarray(y + 0.1 * rng.normal(size=N_ROWS))


def classes_of(y, names):
    return np.array(names)[np.digitize(y, np.quantile(y, np.arange(1, len(names)) / len(names)))]


@pytest.fixture(scope="module", params=["numbers", "two classes", "three classes"])
def fit(request):
    X, y = table()
    if request.param == "numbers":
        return X, y, TreeRegressor(**QUICK).fit(X, y)
    y = classes_of(y, ["low", "high"] if request.param == "two classes" else ["low", "mid", "high"])
    return X, y, TreeClassifier(**QUICK).fit(X, y)


@pytest.fixture(scope="module")
def numbers():
    X, y = table()
    return X, y, TreeRegressor(**QUICK).fit(X, y)


def stops(frontier, max_terms=np.inf):
    """Places of the points that the slider stops at."""
    within = [(i, p) for i, p in enumerate(frontier.points) if p.n_terms <= max_terms]
    return [
        i
        for place, (i, point) in enumerate(within)
        if point.is_chosen or point.loss < min([p.loss for _, p in within[:place]], default=np.inf)
    ]


EVERY_ROW = """n => Array.from({ length: n }, () => {
  document.getElementById("row-after").click();
  const { leaves, outputs } = document.getElementById("prediction").dataset;
  return [JSON.parse(leaves)[0], JSON.parse(outputs)];
})"""


def test_every_size_predicts_as_the_library(fit, open_page):
    X, y, model = fit
    reader = open_page(model.show(X=X, y=y))
    reader.page.click("#tab-row")
    for place, i in enumerate(stops(model.frontier_)):
        reader.page.locator("#size").fill(str(place))
        tree = model.frontier_.points[i].tree
        found = reader.evaluate(EVERY_ROW, N_ROWS)
        assert [leaf for leaf, _ in found] == tree.apply(X).tolist()
        np.testing.assert_allclose(
            [outputs for _, outputs in found], tree.outputs(X), rtol=1e-12, atol=1e-12
        )
        if model.tree_.classes is not None:
            shown = reader.page.locator("#prediction .prediction").text_content()
            assert shown == tree.predict(X)[-1]
    reader.page.wait_for_selector("#check:not(:empty)", state="attached")
    assert reader.page.locator("#check").get_attribute("data-different") == "0"


def test_a_page_says_so_if_another_size_predicts_something_else(numbers, open_page):
    X, y, model = numbers
    page = model.show(X=X, y=y)
    content = content_in(page.html)
    for tree, size in zip(content["trees"], content["sizes"]["points"], strict=True):
        if not size["isChosen"]:
            tree["bias"] = [-1e9] * len(tree["conditions"])  # all go left
    start, rest = page.html.split('type="application/json">', 1)
    _, end = rest.split("</script>", 1)
    wrong = Page(f'{start}type="application/json">{json.dumps(content)}</script>{end}')
    open_page(wrong).page.wait_for_selector("#check.warning", state="attached")


def test_the_chosen_tree_comes_first_and_keys_slide(fit, open_page):
    X, y, model = fit
    frontier = model.frontier_
    reader = open_page(model.show(X=X, y=y), width=1600)
    places = stops(frontier)
    at = places.index(frontier.points.index(frontier.chosen))
    slider = reader.page.locator("#size")
    assert slider.input_value() == str(at)
    assert reader.page.locator("#size-chosen").is_hidden()
    for key, place in [("Home", 0), ("ArrowRight", 1), ("ArrowLeft", 0), ("End", len(places) - 1)]:
        slider.focus()
        reader.page.keyboard.press(key)
        reader.settle()
        assert slider.input_value() == str(place)
        assert_shown(reader, frontier.points[places[place]])
    if at != len(places) - 1:
        reader.page.click("#size-chosen")
        assert_shown(reader, frontier.chosen)
        assert reader.page.locator("#size-chosen").is_hidden()


def assert_shown(reader, point):
    """The bar, the header and the drawing are those of one size."""
    words = reader.page.locator("#size-words").text_content()
    assert point.words in words
    assert format_number(point.loss) in words
    assert point.above_words in words
    assert ("chosen" in words) == point.is_chosen
    spoken = reader.page.locator("#size").get_attribute("aria-valuetext")
    assert point.words in spoken
    assert point.above_words in spoken
    tree = point.tree
    assert tree.size_words.split(", ")[0] in reader.texts("#summary")[0]
    reader.page.click("#open-all")
    reader.settle()
    assert reader.shown_nodes() == set(range(tree.n_nodes))


def test_sliding_follows_the_row_and_the_tabs(numbers, open_page):
    X, y, model = numbers
    reader = open_page(model.show(X=X, y=y))
    reader.page.click("#tab-row")
    reader.page.click("#row-after")
    last = stops(model.frontier_)[-1]
    for place, i in ((0, 0), (len(stops(model.frontier_)) - 1, last)):
        reader.page.locator("#size").fill(str(place))
        tree = model.frontier_.points[i].tree
        leaves, outputs = reader.prediction()
        assert leaves == [tree.apply(X[:1])[0]]
        assert outputs == pytest.approx(tree.predict(X[:1]).tolist())
        assert len(reader.nodes(".card.leaf.on-path")) == 1
        reader.page.click("#tab-text")
        assert reader.page.locator(".outline li.leaf").count() == tree.n_leaves
        reader.page.click("#tab-model")
        used = np.flatnonzero(tree.feature_importances)
        assert reader.texts("#panel-model .output-table .name") == [
            tree.feature_names[j] for j in used[np.argsort(-tree.feature_importances[used])]
        ]
        reader.page.click("#tab-row")


def test_few_terms_have_a_slider_of_their_own(fit, open_page):
    X, y, model = fit
    points = model.frontier_.points
    reader = open_page(model.show(X=X, y=y))
    reader.page.select_option("#terms", "1")
    own = stops(model.frontier_, max_terms=1)
    assert reader.page.locator("#size").get_attribute("max") == str(len(own) - 1)
    shown = points[reader.evaluate("state.tree")]
    assert shown.n_terms <= 1
    reader.page.locator("#size").fill(str(len(own) - 1))
    assert model.at(max_terms=1) == points[reader.evaluate("state.tree")].tree
    reader.page.select_option("#terms", "Infinity")
    assert points[reader.evaluate("state.tree")].n_terms <= 1  # the drawing stays
    reader.evaluate(f"change({{ tree: {points.index(model.frontier_.chosen)} }})")
    assert_shown(reader, model.frontier_.chosen)


def test_every_size_can_be_chosen_in_the_table(numbers, open_page):
    X, y, model = numbers
    reader = open_page(model.show(X=X, y=y))
    reader.page.click("#tab-model")
    links = reader.page.locator(".size-table tbody button")
    assert links.count() == len(model.frontier_.points)
    for i, point in enumerate(model.frontier_.points):
        links.nth(i).click()
        current = reader.page.locator(".size-table [aria-current]")
        assert current.get_attribute("aria-label") == point.words
        assert_shown(reader, point)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
def test_the_bar_fits_at_every_width(fit, open_page, size, theme):
    X, y, model = fit
    reader = open_page(model.show(X=X, y=y), width=size[0], height=size[1], theme=theme)
    bar = reader.page.locator("#size-bar")
    for place in range(len(stops(model.frontier_))):
        reader.page.locator("#size").fill(str(place))
        assert reader.evaluate("document.documentElement.scrollWidth") == size[0]
        inside = reader.evaluate("""() => {
          const bar = document.getElementById("size-bar").getBoundingClientRect();
          return [...document.querySelectorAll("#size-bar *")].every((part) => {
            const box = part.getBoundingClientRect();
            return box.left >= bar.left && box.right <= bar.right;
          });
        }""")
        assert inside
        assert reader.evaluate(UNNAMED) == []
    assert bar.bounding_box()["height"] < 0.3 * size[1]
    dots = reader.page.locator("#size-chart circle")
    assert dots.count() == len(stops(model.frontier_))


def test_the_card_of_a_linear_leaf_has_whole_lines(open_page):
    """However many levels a term has."""
    X, y = table()
    X["many"] = np.random.default_rng(0).choice(list("abcdefgh"), N_ROWS)
    model = TreeRegressor(max_leaves=1, prefer="accuracy", **QUICK).fit(X, y + (X["many"] > "c"))
    card = open_page(model.show(X=X, y=y)).page.locator(".card.leaf")
    assert card.locator(".term").count() == 3
    for line in card.locator(".term, .prediction, .facts").all():
        assert line.evaluate("line => line.scrollHeight <= line.clientHeight + 1")
    boxes = [line.bounding_box() for line in card.locator(".term, .facts, svg").all()]
    for above, below in itertools.pairwise(boxes):
        assert above["y"] + above["height"] <= below["y"] + 1


def test_the_losses_fall_along_the_slider(numbers, open_page):
    X, y, model = numbers
    reader = open_page(model.show(X=X, y=y))
    heights = reader.evaluate(
        "[...document.querySelectorAll('#size-chart circle')].map((dot) => +dot.getAttribute('cy'))"
    )
    losses = [model.frontier_.points[i].loss for i in stops(model.frontier_)]
    assert losses == sorted(losses, reverse=True)
    assert heights == sorted(heights)  # downward on the screen


def test_a_single_tree_and_a_forest_have_no_bar(open_page):
    for model in (make_tree(3), make_forest(5, sizes=(3, 2))):
        reader = open_page(show(model, None, make_rows(1, model.schema, 20)))
        assert reader.page.locator("#size-bar").is_hidden()


def test_a_frontier_of_one_size_has_no_bar(numbers, open_page):
    X, y, model = numbers
    frontier = replace(model.frontier_, points=(model.frontier_.chosen,))
    page = frontier.show(X=X, y=y)
    assert content_in(page.html)["sizes"] is None
    assert open_page(page).page.locator("#size-bar").is_hidden()


def test_a_tree_that_was_put_in_place_is_shown_alone(numbers, open_page):
    X, y, model = numbers
    chosen = model.tree_
    try:
        model.tree_ = model.at(max_leaves=1, max_terms=0)
        reader = open_page(model.show(X=X, y=y))
        assert reader.page.locator("#size-bar").is_hidden()
        assert reader.shown_nodes() == {0}
    finally:
        model.tree_ = chosen


def test_what_the_terms_add_for_a_row_explains_its_prediction(open_page):
    X, y = table()
    model = TreeRegressor(max_leaves=1, **QUICK).fit(X, y)
    reader = open_page(model.show(X=X, y=y))
    reader.page.click("#tab-row")
    sums = []
    for _ in range(5):
        reader.page.click("#row-after")
        sums.append(
            reader.evaluate(
                """() => leafTerms(currentTree(), 0, 0)
              .reduce((sum, { column, weight }) => sum + weight * columnValue(column), 0)"""
            )
        )
    rest = model.predict(X[:5]) - sums
    np.testing.assert_allclose(rest, rest[0], atol=1e-5)  # the constant of the equation
    reader.page.click("#tab-node")
    assert reader.texts("#panel-node .terms-table thead th")[-1] == "this row"


@pytest.mark.parametrize("width", [width for width, _ in SIZES])
def test_the_table_of_sizes_fits_its_panel(numbers, open_page, width):
    X, y, model = numbers
    reader = open_page(model.show(X=X, y=y), width=width)
    reader.page.click("#tab-model")
    cut = reader.evaluate(
        """[...document.querySelectorAll(".size-table th, .size-table td")]
        .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"""
    )
    assert cut == []
