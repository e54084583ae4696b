"""Matrix -> tree: one file per paper, and what they share.

>>> from hardwood.learn import Relaxation, Training
"""

from __future__ import annotations

from hardwood.lazy_names import lazy_names

# Names are imported when first used, so that importing one learner does not import the others.
__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
