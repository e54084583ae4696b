"""The kinds of model: trees, forests, soft ensembles, policy trees, latent trees, hierarchies."""
