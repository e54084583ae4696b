"""Names in a C header: of features, levels, classes and outputs, and functions to look them up."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hardwood import __version__
from hardwood.errors import ExportError
from hardwood.export.c.text import strings, table
from hardwood.export.names import comment, identifiers
from hardwood.export.plan import Plan
from hardwood.table.feature import Feature

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_MAX_LISTED = 1000  # features that the comment at the top lists


def header_name(name: str | None, path: str | os.PathLike[str] | None) -> str:
    """Return the prefix of every name in the header: the given one, the file's, or ``model``."""
    if name is None:
        (name,) = identifiers([Path(path).stem if path is not None else "model"], otherwise="model")
        name = name.lower()
    if not _IDENTIFIER.fullmatch(name):
        raise ExportError(
            f"name is the prefix of every name in the header, and must be a C identifier of at "
            f"most 40 letters, digits and underscores that begins with a letter; found {name!r:.80}"
        )
    return name


@dataclass(frozen=True)
class Names:
    """Names in a header; ``prefix`` begins function names, and in capitals constants."""

    plan: Plan
    prefix: str

    @property
    def capital(self) -> str:
        """Prefix of constants."""
        return self.prefix.upper()

    @cached_property
    def features(self) -> list[str]:
        """Constants for the features."""
        return self._constants("FEATURE", list(self.plan.schema.names))

    @cached_property
    def classes(self) -> list[str]:
        """Constants for the classes, or for labels and outputs that have names."""
        word = "OUTPUT" if self.plan.model.classes is None else "CLASS"
        return self._constants(word, list(self.plan.output_names))

    @cached_property
    def categories(self) -> list[int]:
        """Return the features that are categorical."""
        features = self.plan.schema.features
        return [j for j, feature in enumerate(features) if feature.kind == "categorical"]

    def _constants(self, word: str, names: list[str]) -> list[str]:
        prefix = f"{self.capital}_{word}_"
        return [name.upper() for name in identifiers(names, prefix=prefix, otherwise="")]

    def written(self, code: str) -> str:
        """Replace NAME and CAPS in code by the prefix."""
        return code.replace("NAME", self.prefix).replace("CAPS", self.capital)

    def enumerations(self) -> str:
        """Return enumerations of features, of classes or outputs, and of codes of categories."""
        parts = [
            "/* Positions of the features in a row. */\n",
            _enumeration(self.features),
            f"/* {'Outputs' if self.plan.model.classes is None else 'Classes'}, by position. */\n",
            _enumeration(self.classes),
        ]
        taken = [*self.features, *self.classes]
        for j in self.categories:
            feature = self.plan.schema.features[j]
            stem = self.features[j].removeprefix(f"{self.capital}_FEATURE_")
            levels = identifiers(
                [str(level) for level in feature.levels],
                prefix=f"{self.capital}_LEVEL_{stem}_",
                otherwise="",
                taken=taken,
            )
            taken += levels
            parts += [
                f"/* Categories of {comment(feature.name)}. */\n",
                _enumeration([level.upper() for level in levels]),
            ]
        return "".join(parts)

    def lookups(self) -> str:
        """Return functions from categories to codes, and from positions to names."""
        return self._level_lookup() + self._class_lookup()

    def _level_lookup(self) -> str:
        if not self.categories:
            return ""
        p, features = self.prefix, self.plan.schema.features
        parts = ["/* Categories as text and as numbers, one feature after the other. */\n"]
        levels = [level for j in self.categories for level in features[j].levels]
        is_text = np.array([isinstance(level, str) for level in levels])
        first = np.cumsum([0, *(len(feature.levels) for feature in features)])
        texts = [str(level) for level in levels]
        lengths = [len(text.encode()) for text in texts]
        parts.append(strings(f"{p}_level_text", texts))
        parts.append(table("int32_t", f"{p}_level_length", np.array(lengths)))
        parts.append(table("uint8_t", f"{p}_level_is_text", is_text))
        parts.append(table("int32_t", f"{p}_level_first", first))
        parts.append(self.written(_LOOKUP))
        if not is_text.all():
            numbers = [0.0 if isinstance(level, str) else float(level) for level in levels]
            parts.append(table("double", f"{p}_level_number", np.array(numbers)))
            parts.append(self.written(_NUMBER_LOOKUP))
        return "".join(parts)

    def _class_lookup(self) -> str:
        p, classes = self.prefix, self.plan.model.classes
        word = "output" if classes is None else "class"
        text = strings(f"{p}_{word}_text", self.plan.output_names)
        text += self.written(_NAME_LOOKUP).replace("WORD", word)
        if classes is not None and not any(isinstance(label, str) for label in classes):
            text += table("double", f"{p}_class_number", np.array(classes, dtype=np.float64))
            text += self.written(_CLASS_NUMBER)
        return text

    def top(self, usage: str) -> str:
        """Return the comment at the top of a header."""
        lines = [
            f"{self.prefix}, exported by hardwood {__version__}.",
            comment(self.plan.summary, 400),
            "",
            "One header, C99 or C++; it needs only the C library (link with -lm).",
            "",
            *usage.strip("\n").split("\n"),
            "",
            "A row has these values, in this order:",
            "",
            *(
                f"  {i} {comment(feature.name, 60) or '(no name)'}: {_entry(feature)}"
                for i, feature in enumerate(self.plan.schema.features[:_MAX_LISTED])
            ),
        ]
        left_out = self.plan.schema.n_features - _MAX_LISTED
        lines += [f"  ... and {left_out} more"] if left_out > 0 else []
        body = "".join(f" * {line}".rstrip() + "\n" for line in lines)
        return f"/*\n{body} */\n"


def _entry(feature: Feature) -> str:
    if feature.kind == "categorical":
        return f"the code of a category, 0 to {len(feature.levels) - 1}"
    return {
        "number": "a number",
        "integer": "a number",
        "boolean": "1 for true, 0 for false",
        "date": "seconds since 1970-01-01 (UTC)",
        "duration": "seconds",
    }[feature.origin]


def _enumeration(names: list[str]) -> str:
    body = ",\n".join(f"  {name} = {i}" for i, name in enumerate(names))
    return f"enum {{\n{body}\n}};\n"


_LOOKUP = r"""
/* The code of a category of a feature, from its text; -1, for missing, if it is unknown. */
static inline int NAME_level(int feature, const char *text) {
  const size_t length = strlen(text);
  for (int32_t i = NAME_level_first[feature]; i < NAME_level_first[feature + 1]; ++i)
    if (NAME_level_is_text[i] && (size_t)NAME_level_length[i] == length &&
        memcmp(NAME_level_text[i], text, length) == 0)
      return (int)(i - NAME_level_first[feature]);
  return -1;
}
"""

_NUMBER_LOOKUP = r"""
/* The same for categories that are numbers. */
static inline int NAME_level_of_number(int feature, double number) {
  for (int32_t i = NAME_level_first[feature]; i < NAME_level_first[feature + 1]; ++i)
    if (!NAME_level_is_text[i] && NAME_level_number[i] == number)
      return (int)(i - NAME_level_first[feature]);
  return -1;
}
"""

_NAME_LOOKUP = r"""
/* The name at a position, in UTF-8. */
static inline const char *NAME_WORD_name(int position) {
  return NAME_WORD_text[position];
}
"""

_CLASS_NUMBER = r"""
/* The class itself, where classes are numbers. */
static inline double NAME_class_value(int position) {
  return NAME_class_number[position];
}
"""
