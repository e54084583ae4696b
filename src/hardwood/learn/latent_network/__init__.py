"""How latent trees are learned in torch: the only package of `learn` that imports it."""
