"""What to run: the job spec, its schema and its errors; *.yaml and workloads/ are what people submit."""
