"""A C header with float32 splits in the engine's order of additions, and float64 leaves.

A split's score is sixteen running sums of fused multiply-adds that are folded in a fixed order, as
in ``native/tree/route.hpp``. A row therefore reaches the same leaf as in the library, bit for bit,
if the library's processor has fused multiply-add (x86-64 since 2013, ARM64). Terms with weight zero
change nothing and are left out where that makes the tables smaller.
"""

from __future__ import annotations

import numpy as np

from hardwood.export.c import header_parts as parts
from hardwood.export.c.header_parts import LINKS, Tables
from hardwood.export.c.names import Names
from hardwood.export.plan import Plan


def float_header(plan: Plan, prefix: str) -> tuple[str, int]:
    """Return the header, and the size of its tables in bytes."""
    names, tables = Names(plan, prefix), Tables(prefix)
    code = [
        parts.encoded_type(plan, "float"),
        _encode_code(plan, tables),
        parts.walk_code(plan, tables, _score_code(plan, tables)),
        parts.link_code(plan, "double"),
        _leaf_code(plan, tables),
        _outputs_code(plan),
        parts.prediction_code(plan, "double", _predict_code(plan, tables)),
    ]
    return parts.header(names, tables, names.written(_usage(plan)), _HEAD, code), tables.n_bytes


def _usage(plan: Plan) -> str:
    lines = [
        "Usage:",
        "",
        "  NAME_value row[CAPS_N_FEATURES];    NAN where a value is missing",
        *parts.level_usage(plan),
        *parts.usage_of_predictions(plan, "double"),
        "",
        "A row holds doubles; define CAPS_VALUE as float before including this for floats.",
        "Do not compile with -ffast-math: the header relies on NAN.",
    ]
    return "\n".join(lines)


_HEAD = r"""/* The type of the values in a row. */
#ifndef CAPS_VALUE
#define CAPS_VALUE double
#endif
typedef CAPS_VALUE NAME_value;

/* a * b + c, rounded once. */
#ifndef CAPS_FMA
#define CAPS_FMA(a, b, c) fmaf((a), (b), (c))
#endif

"""


# From a row to values and indicators


def _encode_code(plan: Plan, tables: Tables) -> str:
    encoding = plan.encoding
    own = [("double", "center", encoding.center)]
    own += [("double", "inverse_scale", encoding.inverse_scale)] * encoding.is_scaled
    loop = _NUMBERS.replace("SCALED", " * NAME_inverse_scale[j]" * encoding.is_scaled)
    return parts.encode_code(plan, tables, own, loop, "double")


_NUMBERS = r"""  for (int j = 0; j < N_VALUES; ++j) {
    const double x = row[NAME_numeric[j]], largest = 3.4028234663852886e+38;
    double v = (x - NAME_center[j])SCALED;
    if (x != x) {
      v = 0.0;
FLAG    }
    out->value[j] = (float)(v > largest ? largest : v < -largest ? -largest : v);
  }
"""


# From the root to a leaf


def _score_code(plan: Plan, tables: Tables) -> str:
    encoding = plan.encoding
    if plan.model.n_splits == 0:
        return ""
    tables.add("float", "bias", np.concatenate([tree.bias for tree in plan.trees]))
    terms = indicators = ""
    if encoding.n_values:
        weights = np.concatenate([tree.weights for tree in plan.trees])
        add = "sum[j & 15] = CAPS_FMA(w, row->value[j], sum[j & 15]);"
        terms = parts.term_loop(tables, "float", weights, add)
    if encoding.n_indicators:
        tables.add("float", "indicators", np.concatenate([tree.indicators for tree in plan.trees]))
        indicators = _INDICATORS.replace("N_INDICATORS", str(encoding.n_indicators))
    unused = "" if terms or indicators else "  (void)row;\n"
    return _SCORE.replace("TERMS", terms + unused).replace("INDICATORS", indicators)


_SCORE = r"""
/* A node's score in float32: sixteen running sums, folded in one order. */
static inline float NAME_score(int32_t node, const NAME_encoded *row) {
  float sum[16] = {0.0f}, score;
  sum[0] = NAME_bias[node];
TERMS  for (int half = 8; half > 1; half /= 2)
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  score = sum[0] + sum[1];
INDICATORS  return score;
}
"""

_INDICATORS = r"""  if (row->n_on > 0) {
    const float *added = NAME_indicators + (size_t)node * N_INDICATORS;
    float total = 0.0f;
    for (int i = 0; i < row->n_on; ++i) total += added[row->on[i]];
    score += total;
  }
"""


# From leaves to predictions


def _leaf_code(plan: Plan, tables: Tables) -> str:
    tables.add("double", "leaf_values", np.concatenate([tree.values for tree in plan.trees]))
    if not plan.model.has_linear_leaves:
        return ""
    encoding, first, offset = plan.encoding, [], 0
    linear = [tree for tree in plan.trees if tree.leaf_weights is not None]
    for tree in plan.trees:
        first.append(-1 if tree.leaf_weights is None else offset)
        offset += 0 if tree.leaf_weights is None else tree.n_leaves
    tables.add("integers", "linear_first", first)
    tables.add("integers", "leaf_link", [LINKS.index(tree.link) for tree in plan.trees])
    sums = ""
    if encoding.n_values:
        tables.add("double", "leaf_weights", np.concatenate([t.leaf_weights for t in linear]))
        sums += _LEAF_NUMBERS.replace("N_VALUES", str(encoding.n_values))
    if encoding.n_indicators:
        tables.add("double", "leaf_indicators", np.concatenate([t.leaf_indicators for t in linear]))
        sums += _LEAF_INDICATORS.replace("N_INDICATORS", str(encoding.n_indicators))
    has_link = any(tree.link != "identity" for tree in linear)
    link = _LEAF_LINK if has_link else "  (void)tree;\n"
    return (
        _LINEAR.replace("SUMS", sums)
        .replace("LINK", link)
        .replace("VOTE", _VOTES[plan.trees[0].vote])
    )


_LEAF_NUMBERS = r"""    const double *w =
        NAME_leaf_weights + ((size_t)leaf * CAPS_N_OUTPUTS + (size_t)o) * N_VALUES;
    for (int j = 0; j < N_VALUES; ++j) s += w[j] * (double)row->value[j];
"""

_LEAF_INDICATORS = r"""    const double *added =
        NAME_leaf_indicators + ((size_t)leaf * CAPS_N_OUTPUTS + (size_t)o) * N_INDICATORS;
    for (int i = 0; i < row->n_on; ++i) s += added[row->on[i]];
"""

_LEAF_LINK = "  if (NAME_leaf_link[tree] != 0) NAME_apply_link(NAME_leaf_link[tree], out);\n"

_LINEAR = r"""
/* The output of a linear leaf; leaf counts the linear leaves only. */
static inline void NAME_linear(int tree, int32_t leaf, const double *value,
                               const NAME_encoded *row, double *out) {
  for (int o = 0; o < CAPS_N_OUTPUTS; ++o) {
    double s = value[o];
SUMS    out[o] = s;
  }
LINKVOTE}
"""

_VOTES = {
    "none": "",
    "class": """  int best = 0;
  for (int o = 1; o < CAPS_N_OUTPUTS; ++o)
    if (out[o] > out[best]) best = o;
  for (int o = 0; o < CAPS_N_OUTPUTS; ++o) out[o] = o == best ? 1.0 : 0.0;
""",
    "labels": "  for (int o = 0; o < CAPS_N_OUTPUTS; ++o) out[o] = out[o] >= 0.5 ? 1.0 : 0.0;\n",
}


def _outputs_code(plan: Plan) -> str:
    end = ""
    if plan.divisor > 1:
        end += f"  for (int o = 0; o < CAPS_N_OUTPUTS; ++o) out[o] /= {plan.divisor}.0;\n"
    if plan.exponent:
        end += _HEADROOM.replace("EXPONENT", str(plan.exponent))
    if plan.link != "identity":
        end += f"  NAME_apply_link({LINKS.index(plan.link)}, out);\n"
    linear = _ADD_LINEAR if plan.model.has_linear_leaves else ""
    return _OUTPUTS.replace("LINEAR", linear).replace("END", end)


_ADD_LINEAR = r"""    double output[CAPS_N_OUTPUTS];
    if (NAME_linear_first[t] >= 0) {
      const int32_t place = leaf - NAME_first_leaf[t] + NAME_linear_first[t];
      NAME_linear(t, place, value, &encoded, output);
      value = output;
    }
"""

_HEADROOM = r"""  for (int o = 0; o < CAPS_N_OUTPUTS; ++o) {
    const double limit = ldexp(1.7976931348623157e+308, -EXPONENT);
    out[o] = ldexp(out[o] > limit ? limit : out[o] < -limit ? -limit : out[o], EXPONENT);
  }
"""

_OUTPUTS = r"""
/* Probabilities of the classes or labels, or the predicted numbers. */
static inline void NAME_outputs(const NAME_value *row, double *out) {
  NAME_encoded encoded;
  NAME_encode(row, &encoded);
  for (int o = 0; o < CAPS_N_OUTPUTS; ++o) out[o] = 0.0;
  for (int t = 0; t < CAPS_N_TREES; ++t) {
    const int32_t leaf = NAME_walk(NAME_root[t], &encoded);
    const double *value = NAME_leaf_values + (size_t)leaf * CAPS_N_OUTPUTS;
LINEAR    for (int o = 0; o < CAPS_N_OUTPUTS; ++o) out[o] += value[o];
  }
END}
"""


def _predict_code(plan: Plan, tables: Tables) -> str:
    if plan.model.classes is None:
        return parts.labels_code("double", "out", "outputs", "out[o] >= 0.5")
    if plan.decision_weights is None:
        return parts.best_code("double", "out", "outputs")
    tables.add("double", "decision_weights", plan.decision_weights)
    weigh = "out[o] *= NAME_decision_weights[o];"
    return parts.best_code("double", "out", "outputs", weigh)
