"""Growing linear trees: models of nodes, splits, and trees of every size."""
