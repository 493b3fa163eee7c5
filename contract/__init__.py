"""What both ends of profrun agree on: values shared by the runner and the part inside the job."""
