"""The policy `slo`: objectives, the model that says whether a plan meets them, and the cheapest plan that does."""
