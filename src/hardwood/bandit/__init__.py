"""Trees that learn from what their own decisions earn: policies, their evaluation, simulators."""

from __future__ import annotations

from hardwood.lazy_names import lazy_names

# Names are imported when first used: a policy that serves needs neither scikit-learn nor the
# simulators.
__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
