"""What `fit` and `tune` say of a new model: its scores on the test rows, beside other models'."""
