"""No profiler: trials whose steps are only timed, and the reader of the ``steps.json`` that they leave."""
