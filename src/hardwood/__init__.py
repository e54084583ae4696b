"""Accurate, small, hard oblique decision trees, learned by gradient descent.

>>> from hardwood import DGTClassifier
>>> tree = DGTClassifier(max_depth=3).fit(X, y).tree_   # doctest: +SKIP
>>> print(tree.to_text())                               # doctest: +SKIP
"""

from __future__ import annotations

from hardwood.lazy_names import lazy_names

__version__ = "0.1.0"

# Names are imported when first used, so that `import hardwood` costs next to nothing and a saved
# model loads without scikit-learn.
__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
