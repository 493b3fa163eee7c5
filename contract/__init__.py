"""What the runner and the part inside the job agree on: values that pass between them, and the profilers'
table.

This is the lowest room. Every other room may import it, and it imports none of them. It is shipped into the
job as it is, so it uses the standard library only, relative imports, and runs on Python 3.9.
"""
