"""The policy `slo`: objectives, the model that says whether a plan meets them, and the cheapest plan that does. Pure.

In: objectives as text, and measurements. Out: a plan, or why there is none. `slo_policy` calls it, in the thread of a
round; a submission checks objectives with the grammar.

Reading order: `grammar` (objectives as text), `plan_model` (what a plan costs, and its latency), `slo_model` (the model
from measurements), `cheapest_plan` (the search), `slo_findings` (diagnoses and actions).
"""
