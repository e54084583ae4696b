"""Trees that learn from bandit feedback: policies, off-policy evaluation, simulators."""

from __future__ import annotations

from hardwood.lazy_names import lazy_names

# Names are imported on first use: to serve a policy, neither scikit-learn nor the simulators are
# needed.
__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
