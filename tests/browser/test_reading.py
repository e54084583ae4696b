"""What a reader does with a page: open branches, zoom, search, walk by keyboard, switch trees."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from forests import make_forest
from hardwood import DGTClassifier, GreedyTreeClassifier
from hardwood.model import ObliqueTree
from hardwood.show.page import show
from pages import SIZES, THEMES, UNNAMED
from trees import make_rows, make_tree

GROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"


@pytest.fixture
def tree():
    return make_tree(3, n_splits=14, n_features=5, mixed=True, sparsity=0.8)


@pytest.fixture
def page(tree):
    return show(tree, None, make_rows(1, tree.schema, 120))


def below(tree, split):
    """Nodes below a split, splits numbered before leaves."""
    todo, found = tree.children[split].tolist(), set()
    while todo:
        node = todo.pop()
        found.add(node if node >= 0 else tree.n_splits + ~node)
        if node >= 0:
            todo += tree.children[node].tolist()
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
def test_it_loads_at_every_width_and_in_both_themes(page, tree, open_page, size, theme):
    reader = open_page(page, width=size[0], height=size[1], theme=theme)
    assert reader.evaluate("document.documentElement.scrollWidth") == size[0]  # nothing overflows
    assert 0 in reader.shown_nodes()
    canvas = reader.page.locator("#canvas").bounding_box()
    assert canvas["width"] >= 0.6 * size[0]
    assert canvas["height"] >= 300
    brightness = reader.evaluate(GROUND)
    assert (np.mean(brightness) > 128) == (theme == "light")
    reader.page.click("#theme")
    assert (np.mean(reader.evaluate(GROUND)) > 128) == (theme == "dark")
    for tab in ("node", "row", "model", "text"):
        reader.page.click(f"#tab-{tab}")
        assert reader.page.locator(f"#panel-{tab}").is_visible()
        assert reader.evaluate("document.documentElement.scrollWidth") == size[0]


# How far cards reach beyond the canvas, in pixels.
BEYOND = """(() => {
  const canvas = byId("canvas").getBoundingClientRect();
  const legend = byId("legend").getBoundingClientRect();
  return Math.max(...[...document.querySelectorAll(".card")].map((card) => {
    const box = card.getBoundingClientRect();
    return Math.max(canvas.left - box.left, box.right - canvas.right,
                    legend.bottom - box.top, box.bottom - canvas.bottom);
  }));
})()"""


def chain(n_splits):
    """A tree as deep as it has splits."""
    children = [[-1 - i, i + 1] for i in range(n_splits - 1)] + [[-n_splits, -1 - n_splits]]
    return ObliqueTree.of(
        np.ones((n_splits, 1)),
        bias=np.arange(n_splits),
        children=children,
        values=np.arange(n_splits + 1),
    )


def balanced(n_splits):
    """A tree in heap order, whose leaves are about equally deep."""
    heap = 2 * np.arange(n_splits)[:, None] + [1, 2]
    children = np.where(heap < n_splits, heap, n_splits - 1 - heap)
    return ObliqueTree.of(
        np.ones((n_splits, 1)),
        bias=np.arange(n_splits),
        children=children,
        values=np.arange(n_splits + 1),
    )


FIRST_VIEWS = {
    "a split": lambda: make_tree(3, n_splits=1),
    "8 leaves": lambda: make_tree(3, n_splits=7),
    "15 leaves": lambda: make_tree(1, n_splits=14),
    "other 15 leaves": lambda: make_tree(11, n_splits=14),
    "15 deep leaves": lambda: make_tree(3, n_splits=14),
    "linear leaves": lambda: make_tree(3, n_splits=14, k=1, task="regression", linear=True),
    "15 balanced leaves": lambda: balanced(14),
    "64 balanced leaves": lambda: balanced(63),
    "a chain": lambda: chain(30),
    "many leaves": lambda: make_tree(5, n_splits=120),
}


WHOLE_AT_FIRST = ("8 leaves", "15 leaves", "other 15 leaves", "15 balanced leaves")


@pytest.mark.parametrize("size", [*SIZES, (1200, 800)])
@pytest.mark.parametrize("kind", FIRST_VIEWS)
def test_the_first_view_fits_the_window(kind, size, open_page):
    tree = FIRST_VIEWS[kind]()
    reader = open_page(
        show(tree, None, make_rows(1, tree.schema, 60)), width=size[0], height=size[1]
    )
    assert reader.evaluate(BEYOND) <= 0
    assert len(reader.shown_nodes()) >= 3
    if size[0] == 1600 and kind in WHOLE_AT_FIRST:
        assert reader.shown_nodes() == set(range(tree.n_nodes))


def test_the_text_of_a_deep_tree_is_cut_off_and_continues(open_page):
    reader = open_page(show(chain(3000)), width=1600)
    reader.page.click("#tab-text")
    items = reader.page.locator(".outline li")
    assert items.count() == 61  # 30 splits with a leaf each, and the next split
    reader.page.get_by_role("button", name="… 2,970 splits from here").click()
    assert items.count() == 61
    reader.page.get_by_role("button", name="… 2,940 splits from here").click()
    reader.page.get_by_role("button", name="Back to the root").click()
    assert reader.page.get_by_role("button", name="Back to the root").count() == 0
    assert items.count() == 61


@pytest.mark.parametrize("n_terms", [1, 2, 5, 12, 20])
def test_a_card_has_room_for_twelve_terms(n_terms, open_page):
    weights = np.vstack([np.arange(n_terms, 0.0, -1), np.eye(n_terms)[0]])
    tree = ObliqueTree.of(
        weights, bias=[0, 1], children=[[1, -1], [-2, -3]], values=np.arange(3.0), counts=[9] * 5
    )
    for X in (None, np.random.default_rng(0).normal(size=(30, n_terms))):
        reader = open_page(show(tree, None, X))
        assert reader.page.locator("#node-0 .term").count() == min(n_terms, 12)
        more = f"+ {n_terms - 12} more" if n_terms > 12 else ""
        assert reader.texts("#node-0 .relation .quiet") == [more]
        inside = reader.evaluate("""(() => {
          const chart = document.querySelector("#node-0 .small-chart");
          const bottom = (chart ?? byId("node-0")).getBoundingClientRect();
          const relation = document.querySelector("#node-0 .relation").getBoundingClientRect();
          return (chart ? bottom.top : bottom.bottom) - relation.bottom;
        })()""")
        assert inside >= -1


def test_weights_are_shown_per_unit_and_per_standard_deviation(open_page):
    X = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 100.0]
    y = X @ [1.0, 0.02] > 0
    tree = DGTClassifier(max_depth=1, max_epochs=10, random_state=0).fit(X, y).tree_
    terms = tree.split(0).terms
    sign = np.sign(terms[0].weight)
    reader = open_page(show(tree, None, X))
    titles = reader.evaluate(
        "[...document.querySelectorAll('.terms-table tr[title]')].map((r) => r.title)"
    )
    for term, title in zip(terms, titles, strict=True):
        per_unit, per_deviation = re.findall(r"-?\d[\d.e-]*", title.replace("\u2212", "-"))
        assert float(per_unit) == pytest.approx(sign * term.weight, rel=5e-3)
        signed = np.copysign(term.importance, sign * term.weight)
        assert float(per_deviation) == pytest.approx(signed, rel=5e-3)
    on_card = reader.page.locator("#node-0 .term").first.get_attribute("title")
    assert [f"{term.name}: {title}" for term, title in zip(terms, titles, strict=True)] == (
        on_card.split("\n")[1:]
    )
    by_hand = open_page(show(ObliqueTree.of([[1.0, 2.0]], bias=[0], values=[0, 1])))
    assert "deviation" not in by_hand.page.locator("#node-0 .term").first.get_attribute("title")


def test_no_cards_overlap(open_page):
    for kind in ("other 15 leaves", "a chain", "many leaves"):
        tree = FIRST_VIEWS[kind]()
        reader = open_page(show(tree), width=1600)
        reader.evaluate("setAllOpen(true)")
        gap = reader.evaluate("""(() => {
          const tree = currentTree(), byLevel = new Map();
          for (let node = 0; node < tree.nNodes; node++) {
            const half = nodeSize(tree, node, goal.form).width / 2;
            const level = byLevel.get(tree.depth[node]) ?? [];
            byLevel.set(tree.depth[node], [...level, [goal.x[node] - half, goal.x[node] + half]]);
          }
          const gaps = [...byLevel.values()].flatMap((level) => {
            level.sort((a, b) => a[0] - b[0]);
            return level.slice(1).map((box, i) => box[0] - level[i][1] - goal.form.gap);
          });
          return Math.min(...gaps);
        })()""")
        assert gap >= -1e-6


def test_branches_close_and_open(page, tree, open_page):
    reader = open_page(page, width=1600)
    reader.page.click("#open-all")
    reader.settle()
    everything = set(range(tree.n_nodes))
    assert reader.shown_nodes() == everything
    root = reader.page.locator("#node-0")
    assert root.get_attribute("aria-expanded") == "true"
    child = int(tree.children[0].max())
    reader.page.locator(f"#node-{child} .toggle").click()
    reader.settle()
    assert reader.shown_nodes() == everything - below(tree, child)
    closed = reader.page.locator(f"#node-{child}")
    assert closed.get_attribute("aria-expanded") == "false"
    n_splits = 1 + sum(node < tree.n_splits for node in below(tree, child))
    assert closed.locator(".toggle").text_content() == f"+ {n_splits}"
    closed.dblclick(position={"x": 20, "y": 20})
    reader.settle()
    assert reader.shown_nodes() == everything


def test_zoom_by_buttons_wheel_and_keys_and_drag(page, open_page):
    reader = open_page(page)
    scale = "view.scale"
    start = reader.evaluate(scale)
    reader.page.click("#zoom-in")
    assert reader.evaluate(scale) == pytest.approx(1.3 * start)
    box = reader.page.locator("#canvas").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    under = "([x, y]) => [(x - view.x) / view.scale, (y - view.y) / view.scale]"
    point = [middle[0] - box["x"], middle[1] - box["y"]]
    before = reader.evaluate(under, point)
    reader.page.mouse.move(*middle)
    reader.page.mouse.wheel(0, -300)
    reader.page.wait_for_function(f"view.scale > {1.35 * start}")
    assert reader.evaluate(under, point) == pytest.approx(
        before, abs=1
    )  # the point under the pointer stays fixed
    reader.page.mouse.down()
    reader.page.mouse.move(middle[0] + 60, middle[1] + 30, steps=4)
    reader.page.mouse.up()
    assert reader.evaluate(under, [point[0] + 60, point[1] + 30]) == pytest.approx(before, abs=1)
    reader.page.locator("#cards [tabindex='0']").focus()
    reader.page.keyboard.press("0")
    reader.settle()
    whole = reader.evaluate(
        "[wholeBox().left, wholeBox().right].map((x) => view.x + x * view.scale)"
    )
    assert 0 <= whole[0] < whole[1] <= box["width"]


def test_two_fingers_pinch(page, open_page):
    reader = open_page(page, width=400, touch=True)
    start = reader.evaluate("view.scale")
    reader.evaluate("""() => {
      const point = (type, pointerId, clientX) => document.getElementById("canvas").dispatchEvent(
        new PointerEvent(type, { pointerId, clientX, clientY: 300, button: 0, bubbles: true }));
      point("pointerdown", 1, 100);
      point("pointerdown", 2, 200);
      point("pointermove", 2, 300);
      point("pointerup", 1, 100);
      point("pointerup", 2, 300);
    }""")
    assert reader.evaluate("view.scale") == pytest.approx(2 * start)


def test_search_marks_the_splits_that_use_a_feature(page, tree, open_page):
    reader = open_page(page, width=1600)
    reader.page.click("#open-all")
    reader.settle()
    for j, name in enumerate(tree.feature_names):
        columns = tree.schema.column_feature == j
        using = np.flatnonzero((tree.weights[:, columns] != 0).any(axis=1)).tolist()
        reader.page.fill("#search", name)
        assert reader.texts("#suggestions [role=option]") == [name]
        reader.page.press("#search", "Enter")
        found = reader.nodes(".card.found")
        assert sorted(found) == using
        assert f"in {len(using)} of {tree.n_splits} splits" in reader.texts("#search-result")[0]
    for _ in using:  # Enter goes from split to split
        reader.page.press("#search", "Enter")
        assert reader.evaluate("state.selected") in using
    reader.page.press("#search", "Escape")
    assert reader.page.locator(".card.found").count() == 0
    reader.page.fill("#search", "no such thing")
    assert reader.texts("#suggestions li") == ["no matching feature"]


def test_a_match_in_a_closed_branch_is_opened(open_page):
    deep = ObliqueTree.of(
        [[1.0, 0.0]] * 6 + [[0.0, 1.0]],
        thresholds=[0.0] * 7,
        values=np.arange(8.0),
        feature_names=["often", "once"],
    )
    reader = open_page(show(deep), width=400)
    assert 6 not in reader.shown_nodes()
    reader.page.fill("#search", "once")
    reader.page.press("#search", "Enter")
    assert reader.page.locator(".toggle.found").count() == 1  # there is one below
    reader.page.press("#search", "Enter")
    reader.settle()
    assert "found" in reader.page.locator("#node-6").get_attribute("class")
    assert reader.evaluate("state.selected") == 6


def test_arrows_move_and_enter_closes(page, tree, open_page):
    reader = open_page(page, width=1600)
    reader.page.click("#open-all")
    reader.settle()
    reader.page.locator("#node-0").focus()
    selected = "+document.activeElement.dataset.node"
    left, right = (c if c >= 0 else tree.n_splits + ~c for c in tree.children[0].tolist())
    for key, node in [
        ("ArrowDown", left),
        ("ArrowRight", right),
        ("ArrowLeft", left),
        ("ArrowUp", 0),
        ("ArrowUp", 0),  # there is nothing above the root
        ("ArrowLeft", 0),
    ]:
        reader.page.keyboard.press(key)
        assert reader.evaluate(selected) == node
    reader.page.keyboard.press("Enter")
    reader.settle()
    assert reader.shown_nodes() == {0}
    reader.page.keyboard.press("ArrowDown")  # opens it again
    reader.settle()
    assert reader.evaluate(selected) == left
    assert reader.page.locator("#node-0").get_attribute("tabindex") == "-1"  # one stop for Tab
    reader.page.keyboard.press("Tab")
    assert reader.evaluate("document.activeElement.id") == "zoom-in"


def test_the_path_of_a_row_says_what_is_missing(open_page):
    X = pd.DataFrame(
        {"age": [20.0, 30, 40, np.nan] * 10, "color": ["red", "blue", None, "red"] * 10}
    )
    tree = GreedyTreeClassifier(max_depth=3).fit(X, ["a", "b", "c", "d"] * 10).tree_
    reader = open_page(show(tree, None, X))
    reader.page.click("#tab-row")
    n_missing = 0
    for i, row in enumerate(X.iloc[:4].to_dict("records")):
        reader.evaluate(f"chooseRow({i})")
        steps = zip(reader.texts("#path .step-title"), reader.texts("#path .quiet"), strict=False)
        for title, text in steps:
            (name,) = (name for name in row if title.startswith(name))
            assert text.startswith("missing → ") == pd.isna(row[name])
            n_missing += pd.isna(row[name])
    assert n_missing > 0


def test_escape_removes_the_row(page, open_page):
    reader = open_page(page)
    reader.page.click("#tab-row")
    reader.page.click("#row-after")
    assert reader.page.locator(".card.on-path").count() > 0
    reader.page.keyboard.press("Escape")
    assert reader.page.locator(".card.on-path").count() == 0
    assert reader.page.locator("#prediction").text_content() == ""


def test_the_histogram_has_the_row_on_its_side_of_the_threshold(page, open_page):
    reader = open_page(page)
    sides = reader.evaluate("""Array.from({ length: 100 }, (_, i) => {
      chooseRow(i);
      return currentPath().steps.map(({ node, score, goesRight }) => {
        const bins = splitBins(currentTree(), node);
        return [placeOfScore(bins, score) >= placeOfScore(bins, 0), goesRight];
      });
    }).flat()""")
    assert len(sides) > 100
    assert all(is_right_of == goes_right for is_right_of, goes_right in sides)


def test_screen_readers_find_a_tree_and_its_labels(page, tree, open_page):
    reader = open_page(page, width=1600)
    reader.page.click("#open-all")
    reader.settle()
    items = reader.page.locator("[role=tree] > [role=treeitem]")
    assert items.count() == tree.n_nodes
    label = reader.page.locator("#node-0").get_attribute("aria-label")
    assert "split" in label
    assert "120 rows" in label
    unnamed = reader.evaluate(UNNAMED)
    assert unnamed == []
    reader.page.click("#tab-text")
    outline = reader.page.locator(".outline")
    assert outline.locator("li").count() == tree.n_nodes
    assert outline.locator("li.leaf").count() == tree.n_leaves


def test_a_forest_has_a_summary_and_its_trees(open_page):
    forest = make_forest(5, sizes=(6, 0, 3), mixed=True)
    reader = open_page(show(forest, None, make_rows(1, forest.schema, 60)))
    assert reader.page.locator("#panel-model").is_visible()
    sizes = [
        [f"Tree {i + 1}", str(t.depth), str(t.n_splits), str(t.n_leaves)]
        for i, t in enumerate(forest.trees)
    ]
    rows = reader.page.locator(".tree-table tbody tr").all()
    assert [row.locator("th, td").all_text_contents() for row in rows] == sizes
    assert "mean of 3 trees" in reader.texts("#panel-model p")[0]
    for i, tree in enumerate(forest.trees):
        reader.page.select_option("#tree", index=i)
        reader.page.click("#open-all")
        reader.settle()
        assert reader.shown_nodes() == set(range(tree.n_nodes))
    reader.page.get_by_role("button", name="Tree 1").click()
    assert reader.page.locator("#tree").input_value() == "0"


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("numberText(-8.05e-5, 3)", "\u22128.05e\u22125"),
        ("termText('- 4.37e-7*a*b')", "\u2212\u00a04.37e\u22127\u00b7a*b"),
        ("termText('+ (0.5 if a is b-2)')", "+\u00a0(0.5 if a is b-2)"),
        ("relationText('>= -3.8')", "\u2265\u00a0\u22123.8"),
        ("relationText('>= 2019-01-22')", "\u2265\u00a02019-01-22"),
        ("shareText(0.18)", "18.0 %"),
        ("shareText(1)", "100 %"),
        ("shareText(0.0001)", "< 0.1 %"),
        ("modelText(0.1 + 0.2)", "0.3"),
        ("modelText(-12345.6789)", "\u221212345.6789"),
        ("modelText(1.5e-7)", "1.5e\u22127"),
        ("modelText(1 / 3)", "0.333"),
        ("probabilityText(0.9982)", "99.82 %"),
        ("probabilityText(0.7)", "70 %"),
        ("probabilityText(1 / 3)", "33.3 %"),
    ],
)
def test_numbers_have_minus_signs_and_do_not_break(page, open_page, script, text):
    assert open_page(page).evaluate(script) == text


def test_the_axis_of_counts_begins_at_zero(open_page):
    X = np.arange(60.0)[:, None] % 17
    tree = GreedyTreeClassifier(max_depth=1).fit(X, X[:, 0] > 7).tree_
    reader = open_page(show(tree, None, X))
    assert reader.texts(".score-chart .quiet-tick")[0] == "0"  # but for the rounding of scores


def test_a_page_without_rows_shows_training_rows(tree, open_page):
    reader = open_page(show(tree))
    assert reader.page.locator("#node-0").bounding_box()["height"] < 110  # no empty histogram
    assert "made without a table" in reader.texts("#panel-node")[0]
    assert reader.page.locator("#row-chooser").is_hidden()
    assert reader.texts("#node-0 .count") == [f"n = {int(tree.counts[0])}"]


def test_a_notebook_shows_it_in_a_frame(page, tree, browser, tmp_path):
    context = browser.new_context()
    complaints = []
    notebook = context.new_page()
    notebook.on("pageerror", lambda error: complaints.append(str(error)))
    notebook.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    (tmp_path / "notebook.html").write_text(f"<p>Out[1]:</p>{page._repr_html_()}", encoding="utf-8")
    notebook.goto((tmp_path / "notebook.html").as_uri())
    frame = notebook.frame_locator("iframe")
    frame.locator("#tab-row").click()
    frame.locator("#row-after").click()
    assert frame.locator(".card.on-path").count() > 0
    context.close()
    assert complaints == []


HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "*/ alert(3) /*",
    "'; DROP TABLE trees;--",
    "line\nbreak\ttab\u2028separator",
    "\u202eright to left",
    "עברית (x) العربية",
    "[[data]] [[script]] {{7*7}} ${7*7}",
    "&lt;b&gt; &amp;",
    "",
    " ",
    "a*b - 2 >= c",
]


def test_no_name_breaks_the_page(open_page):
    k = len(HOSTILE)
    weights = np.eye(k)[: k - 1] + 0.1
    hostile = ObliqueTree.of(
        weights,
        thresholds=np.zeros(k - 1),
        children=[[i + 1 if i + 1 < k - 1 else -k, -1 - i] for i in range(k - 1)],
        values=np.eye(k),
        classes=HOSTILE,
        feature_names=HOSTILE,
        target_names="</title><script>alert(4)</script>",
        counts=None,
    )
    X = np.random.default_rng(0).normal(size=(80, k))
    reader = open_page(show(hostile, None, X, hostile.predict(X)))
    assert reader.page.title() == "</title><script>alert(4)</script>: an oblique tree"
    assert reader.evaluate("document.querySelectorAll('script').length") == 2  # data and code
    assert (
        reader.evaluate("document.querySelectorAll('img, b:not(dialog b, .relation b)').length")
        == 0
    )
    reader.page.click("#open-all")
    reader.page.click("#tab-row")
    answers = [
        row["answer"]
        for row in reader.evaluate("""Array.from({ length: 80 }, () => {
      document.getElementById("row-after").click();
      return { answer: document.querySelector("#prediction .prediction").textContent };
    })""")
    ]
    from hardwood.text.terms import label_text

    assert answers == [label_text(label) for label in hostile.predict(X).tolist()]
    reader.page.click("#tab-model")
    reader.page.click("#tab-text")
    reader.page.fill("#search", "DROP TABLE")
    reader.page.press("#search", "Enter")
    assert reader.page.locator(".card.found").count() > 0


# Ways to get something into the page; returns which rules refused them.
ATTEMPTS = """async () => {
  const refused = new Set();
  document.addEventListener("securitypolicyviolation", (e) => refused.add(e.effectiveDirective));
  const insert = (tag, parts) => document.body.append(
    Object.assign(document.createElement(tag), parts));
  await fetch("https://example.org/").catch(() => {});
  insert("img", { src: "https://example.org/a.png" });
  insert("script", { src: "https://example.org/a.js" });
  insert("script", { textContent: "window.inserted = 1" });
  await new Promise((done) => setTimeout(done, 200));
  return [...refused];
}"""


def test_the_page_cannot_make_requests(browser, page, tmp_path):
    """Even a script injected into the page could not connect to anything."""
    context = browser.new_context()
    requests = []
    context.route("http*://**", lambda route: (requests.append(route.request.url), route.abort()))
    opened = context.new_page()
    page.save(tmp_path / "page.html")
    opened.goto((tmp_path / "page.html").as_uri())
    refused = opened.evaluate(ATTEMPTS)
    assert requests == []
    assert {"connect-src", "img-src", "script-src-elem"} <= set(refused)
    assert opened.evaluate("window.inserted") is None
    context.close()


def big_tree():
    """A perfect tree of 1,023 nodes, with its rows."""
    rng = np.random.default_rng(0)
    m, p = 511, 30
    weights = rng.normal(size=(m, p))
    X = rng.normal(size=(2000, p))
    tree = ObliqueTree.of(
        weights,
        thresholds=np.zeros(m),
        values=rng.dirichlet(np.ones(5), size=m + 1),
        classes=list("abcde"),
        counts=np.ones(2 * m + 1),
    )
    return tree, X


FRAMES = """async () => {
  const script = [];
  for (let i = 0; i < 40; i++) {
    await new Promise(requestAnimationFrame);
    const start = performance.now();
    setView(view.x + (i % 2 ? 90 : -60), view.y + 3, view.scale * (i % 2 ? 1.03 : 0.97));
    script.push(performance.now() - start);
  }
  return script.sort((a, b) => a - b)[20];
}"""


def test_a_tree_of_a_thousand_nodes_stays_smooth(open_page):
    tree, X = big_tree()
    reader = open_page(show(tree, None, X), width=1600)
    assert len(reader.shown_nodes()) <= 63  # only the first levels
    assert reader.evaluate(FRAMES) < 16
    reader.page.click("#open-all")
    reader.settle()
    assert len(reader.shown_nodes()) == 1023
    assert reader.evaluate("document.querySelectorAll('*').length") < 8000
    assert reader.evaluate(FRAMES) < 16  # milliseconds of script, of the 16.7 of a frame
    reader.evaluate("zoomAt(600, 400, 20)")
    assert len(reader.shown_nodes()) < 300  # invisible nodes are not drawn
