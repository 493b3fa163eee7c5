"""From a job to the trials of its run: what is executed, in which order, and what is shipped into the job."""
