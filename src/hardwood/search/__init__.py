"""The search for the best tree: candidates, augmentation, distillation and refinement."""
