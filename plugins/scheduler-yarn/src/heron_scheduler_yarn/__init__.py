"""The containers of a topology as components of YARN services.

Reading order: `scheduler`, `yarn_cluster`, `service_spec` (what YARN gets), then `job_store`, `service_view`,
`yarn_api`.
"""
