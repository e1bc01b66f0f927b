"""The containers of a topology as batch jobs of Slurm.

Reading order: `scheduler`, `slurm_cluster`, `job_script` (what runs on a node), then `job_store`, `slurm_jobs`,
`slurm_commands`.
"""
