"""Tool kit of the recovery claims: planted tasks, learners on the same data, figures."""
