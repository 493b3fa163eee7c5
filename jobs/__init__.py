"""What to run: the job spec, its schema and its errors; jobs/*.yaml and jobs/workloads are what people submit."""
