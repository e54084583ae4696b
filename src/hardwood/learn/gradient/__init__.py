"""What learners by gradient descent share: the native training loop, and perfect trees."""
