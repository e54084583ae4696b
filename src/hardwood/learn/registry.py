"""All learners by name. A new one is one file in this folder, and a line here."""

from __future__ import annotations

from hardwood.learn.dgt import DGT
from hardwood.learn.greedy import Greedy
from hardwood.learn.latent import Latent
from hardwood.learn.learner import Learner
from hardwood.learn.non_greedy import NonGreedy
from hardwood.learn.reinforced import Reinforced
from hardwood.learn.semantic import Semantic
from hardwood.learn.tao import TAO
from hardwood.learn.tel import TEL

LEARNERS: dict[str, type[Learner]] = {
    "dgt": DGT,
    "greedy": Greedy,
    "latent": Latent,
    "non_greedy": NonGreedy,
    "reinforced": Reinforced,
    "semantic": Semantic,
    "tao": TAO,
    "tel": TEL,
}
