"""What runs inside the job: the wrapper (one process a rank) and the hook (in every Python process).

Shipped as ``_profrun.in_job`` into images that have nothing of ours: the standard library only,
relative imports, Python 3.9. docs/in-job.md says what each part promises.
"""
