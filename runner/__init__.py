"""Running a job: plan, backends, the wrapper inside the job, the run store and the command line."""
