"""Which tree: the best tree, its candidates, augmentation, distillation and refinement."""
