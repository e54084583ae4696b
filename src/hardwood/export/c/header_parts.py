"""Code that headers with floats and with integers share: tables, walks, categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardwood.export.c.names import Names
from hardwood.export.c.text import n_bytes, smallest_integer, table
from hardwood.export.plan import Plan


class Tables:
    """The tables of a header in the order of their addition, and their size."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.text = ""
        self.n_bytes = 0

    def add(self, kind: str, name: str, values: Any) -> None:
        """Add a table; ``kind`` is a C type, or ``"integers"`` for the smallest that fits."""
        array = np.asarray(values)
        if kind == "integers":
            kind = smallest_integer(array)
        self.text += table(kind, f"{self.prefix}_{name}", array)
        self.n_bytes += n_bytes(kind, array)


def header(names: Names, tables: Tables, usage: str, head: str, code: list[str]) -> str:
    """Assemble a header; ``head`` declares what the tables and ``code`` need."""
    plan, guard = names.plan, f"HARDWOOD_{names.capital}_H"
    return (
        names.top(usage)
        + f"#ifndef {guard}\n#define {guard}\n\n"
        + "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n"
        + names.written(head)
        + f"enum {{\n  {names.capital}_N_FEATURES = {plan.schema.n_features},\n"
        + f"  {names.capital}_N_OUTPUTS = {plan.model.n_outputs},\n"
        + f"  {names.capital}_N_TREES = {len(plan.trees)}\n}};\n"
        + names.enumerations()
        + names.lookups()
        + "\n/* The model. */\n"
        + tables.text
        + "".join(names.written(part) for part in code)
        + "\n#endif\n"
    )


def usage_of_predictions(plan: Plan, real: str) -> list[str]:
    """Explain the functions that predict; ``real`` is the type of a number."""
    many = f"{real} out[CAPS_N_OUTPUTS]; "
    proba = f"  {many}NAME_predict_proba(row, out);"
    lines = {
        "classification": [
            "  int c = NAME_predict(row);    the position of the class: NAME_class_name(c)",
            proba,
        ],
        "multilabel": [
            "  uint8_t yes[CAPS_N_OUTPUTS]; NAME_predict(row, yes);    0 or 1 each",
            proba,
        ],
        "regression": [f"  {real} y = NAME_predict(row);"]
        if plan.model.n_outputs == 1
        else [f"  {many}NAME_predict(row, out);"],
    }[plan.model.task]
    leaves = "int32_t leaves[CAPS_N_TREES]; NAME_leaves(row, leaves);    the leaf in each tree"
    return [*lines, f"  {leaves}"]


def level_usage(plan: Plan) -> list[str]:
    """Explain how to find the code of a category; empty without categorical features."""
    if plan.schema.is_numeric:
        return []
    return ['  row[CAPS_FEATURE_...] = NAME_level(CAPS_FEATURE_..., "category");    -1: missing']


# From a row to values and indicators


def encode_code(
    plan: Plan, tables: Tables, own: list[tuple[str, str, Any]], loop: str, kind: str
) -> str:
    """Write the function that encodes a row.

    ``loop`` goes over its numbers, uses the tables ``own``, and has FLAG where one is missing;
    ``kind`` is the type of a category's code.
    """
    encoding = plan.encoding
    code = "\nstatic inline void NAME_encode(const NAME_value *row, NAME_encoded *out) {\n"
    code += "  out->n_on = 0;\n" if encoding.n_indicators else ""
    if encoding.n_values:
        for table_kind, name, values in [("integers", "numeric", encoding.numeric), *own]:
            tables.add(table_kind, name, values)
        loop = loop.replace("FLAG", value_flags(plan, tables))
        code += loop.replace("N_VALUES", str(encoding.n_values))
    return code + category_loop(plan, tables, kind) + "}\n"


def category_loop(plan: Plan, tables: Tables, kind: str) -> str:
    """Write the loop that turns codes of categories into indicators; empty without categories."""
    encoding, on = plan.encoding, _indicator_type(plan)
    categories = sorted(encoding.first_level)
    if not categories:
        return ""
    tables.add("integers", "category", categories)
    tables.add("int16_t", "n_levels", [len(plan.schema.features[j].levels) for j in categories])
    tables.add("integers", "first_level", [encoding.first_level[j] for j in categories])
    flags = [encoding.flag.get(j, -1) for j in categories]
    otherwise = ""
    if max(flags) >= 0:
        tables.add("integers", "level_flag", flags)
        otherwise = (
            "    else if (NAME_level_flag[j] >= 0)\n"
            f"      out->on[out->n_on++] = ({on})NAME_level_flag[j];\n"
        )
    return (
        f"  for (int j = 0; j < {len(categories)}; ++j) {{\n"
        f"    const {kind} code = row[NAME_category[j]];\n"
        "    if (code >= 0 && code < NAME_n_levels[j])\n"
        f"      out->on[out->n_on++] = ({on})(NAME_first_level[j] + (int)code);\n"
        + otherwise
        + "  }\n"
    )


def _indicator_type(plan: Plan) -> str:
    return "uint16_t" if plan.encoding.n_indicators <= 2**16 else "uint32_t"


def value_flags(plan: Plan, tables: Tables) -> str:
    """Write the code that sets the missing indicator of number ``j``; empty if there is none."""
    flags = [plan.encoding.flag.get(int(feature), -1) for feature in plan.encoding.numeric]
    if max(flags) < 0:
        return ""
    tables.add("integers", "flag", flags)
    on = _indicator_type(plan)
    return f"      if (NAME_flag[j] >= 0) out->on[out->n_on++] = ({on})NAME_flag[j];\n"


def encoded_type(plan: Plan, value: str) -> str:
    """Write the type of an encoded row, whose numbers are ``value``."""
    n, on, members = plan.encoding.n_values, _indicator_type(plan), ""
    if n:
        members += f"  {value} value[{n}]; /* numbers minus their centers */\n"
    if plan.encoding.n_indicators:
        members += f"  {on} on[CAPS_N_FEATURES]; /* levels and missing indicators that are on */\n"
        members += "  int n_on;\n"
    return "\n/* A row as the splits see it. */\ntypedef struct {\n" + members + "} NAME_encoded;\n"


# Trees


def joined_trees(plan: Plan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the nodes of all trees consecutive numbers.

    Returns
    -------
        (M, 2), (T,), (T,): splits by number, leaves as ``-1 - leaf``; the first leaf of each tree.
    """
    children, roots, first_leaves = [np.empty((0, 2), np.int64)], [], []
    first_split = first_leaf = 0
    for tree in plan.trees:
        own = tree.children.astype(np.int64)
        children.append(np.where(own >= 0, own + first_split, own - first_leaf))
        roots.append(first_split if tree.n_splits else -1 - first_leaf)
        first_leaves.append(first_leaf)
        first_split += tree.n_splits
        first_leaf += tree.n_leaves
    return np.concatenate(children), np.array(roots), np.array(first_leaves)


def walk_code(plan: Plan, tables: Tables, score: str) -> str:
    """Add the tables of the trees and write the walk, after ``score``, which scores a node."""
    children, roots, first_leaf = joined_trees(plan)
    tables.add("integers", "root", roots)
    tables.add("integers", "first_leaf", first_leaf)
    if not len(children):
        return _WALK_NOWHERE + _LEAVES
    tables.add("integers", "children", children)
    return score + _WALK + _LEAVES


def term_loop(tables: Tables, kind: str, weights: np.ndarray, add: str) -> str:
    """Write the loop over a split's terms, and add their tables.

    All weights (M, n) are kept, or only those other than zero with their columns, whichever is
    smaller. ``add`` is done for each; it uses ``w`` and ``j``.
    """
    used = weights != 0
    columns = np.nonzero(used)[1]
    begin = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    if len(columns) == 0:
        return ""
    lists = sum(n_bytes(smallest_integer(part), part) for part in (begin, columns))
    if n_bytes(kind, weights) <= lists + n_bytes(kind, weights[used]):
        tables.add(kind, "weights", weights)
        n = weights.shape[1]
        return (
            f"  for (int j = 0; j < {n}; ++j) {{\n"
            f"    const {kind} w = NAME_weights[(size_t)node * {n} + (size_t)j];\n"
            f"    {add}\n  }}\n"
        )
    tables.add("integers", "term_begin", begin)
    tables.add("integers", "term_column", columns)
    tables.add(kind, "term_weight", weights[used])
    return (
        "  for (int32_t i = NAME_term_begin[node]; i < NAME_term_begin[node + 1]; ++i) {\n"
        f"    const int j = NAME_term_column[i];\n    const {kind} w = NAME_term_weight[i];\n"
        f"    {add}\n  }}\n"
    )


_WALK = r"""
static inline int32_t NAME_walk(int32_t node, const NAME_encoded *row) {
  while (node >= 0) node = NAME_children[2 * node + (NAME_score(node, row) >= 0)];
  return -1 - node;
}
"""

_WALK_NOWHERE = r"""
static inline int32_t NAME_walk(int32_t node, const NAME_encoded *row) {
  (void)row; /* no tree has a split */
  return -1 - node;
}
"""

_LEAVES = r"""
/* The leaf that a row reaches in each tree. */
static inline void NAME_leaves(const NAME_value *row, int32_t *leaves) {
  NAME_encoded encoded;
  NAME_encode(row, &encoded);
  for (int t = 0; t < CAPS_N_TREES; ++t)
    leaves[t] = NAME_walk(NAME_root[t], &encoded) - NAME_first_leaf[t];
}
"""


# Predictions


def prediction_code(plan: Plan, real: str, predict: str) -> str:
    """Write the functions that predict; ``predict`` is the one for classes and labels."""
    if plan.model.task != "regression":
        return _PROBA.replace("REAL", real) + predict
    return (_NUMBER if plan.model.n_outputs == 1 else _NUMBERS).replace("REAL", real)


_PROBA = r"""
static inline void NAME_predict_proba(const NAME_value *row, REAL *out) {
  NAME_outputs(row, out);
}
"""

_NUMBERS = r"""
static inline void NAME_predict(const NAME_value *row, REAL *out) {
  NAME_outputs(row, out);
}
"""

_NUMBER = r"""
static inline REAL NAME_predict(const NAME_value *row) {
  REAL out[1];
  NAME_outputs(row, out);
  return out[0];
}
"""


def best_code(kind: str, items: str, ask: str, weigh: str = "") -> str:
    """Write the prediction of a class: the largest of the items that function ``ask`` returns.

    ``weigh``, if any, is done for item ``o`` before they are compared.
    """
    loop = f"  for (int o = 0; o < CAPS_N_OUTPUTS; ++o) {weigh}\n" if weigh else ""
    code = _BEST.replace("WEIGH", loop)
    return code.replace("KIND", kind).replace("ITEMS", items).replace("ASK", ask)


def labels_code(kind: str, items: str, ask: str, test: str) -> str:
    """Write the prediction of labels: 1 where ``test`` holds for item ``o``."""
    code = _LABELS.replace("TEST", test)
    return code.replace("KIND", kind).replace("ITEMS", items).replace("ASK", ask)


_BEST = r"""
/* The position of the predicted class; the first one if several tie. */
static inline int NAME_predict(const NAME_value *row) {
  KIND ITEMS[CAPS_N_OUTPUTS];
  int best = 0;
  NAME_ASK(row, ITEMS);
WEIGH  for (int o = 1; o < CAPS_N_OUTPUTS; ++o)
    if (ITEMS[o] > ITEMS[best]) best = o;
  return best;
}
"""

_LABELS = r"""
/* 1 for each label whose probability is at least a half. */
static inline void NAME_predict(const NAME_value *row, uint8_t *yes) {
  KIND ITEMS[CAPS_N_OUTPUTS];
  NAME_ASK(row, ITEMS);
  for (int o = 0; o < CAPS_N_OUTPUTS; ++o) yes[o] = TEST;
}
"""


# Links


LINKS = ("identity", "exp", "softmax", "logistic")


def link_code(plan: Plan, real: str) -> str:
    """Write the link functions that the model uses, on numbers of type ``real``."""
    used = {tree.link for tree in plan.trees if tree.leaf_weights is not None} | {plan.link}
    used.discard("identity")
    if not used:
        return ""
    cases = "".join(
        f"  if (link == {LINKS.index(link)}) {{ /* {link} */\n{_LINK_CODE[link]}  }}\n"
        for link in sorted(used)
    )
    return ("\nstatic inline void NAME_apply_link(int link, REAL *s) {\n" + cases + "}\n").replace(
        "REAL", real
    )


_LINK_CODE = {
    "exp": "    for (int o = 0; o < CAPS_N_OUTPUTS; ++o) s[o] = (REAL)exp(s[o]);\n",
    "softmax": """    REAL largest = s[0], total = 0;
    for (int o = 1; o < CAPS_N_OUTPUTS; ++o) largest = s[o] > largest ? s[o] : largest;
    for (int o = 0; o < CAPS_N_OUTPUTS; ++o) total += s[o] = (REAL)exp(s[o] - largest);
    for (int o = 0; o < CAPS_N_OUTPUTS; ++o) s[o] /= total;
""",
    "logistic": """    for (int o = 0; o < CAPS_N_OUTPUTS; ++o) {
      const REAL e = (REAL)exp(s[o] < 0 ? s[o] : -s[o]);
      s[o] = (s[o] < 0 ? e : 1) / (1 + e);
    }
""",
}
