"""HolisticTraceAnalysis loads one trace; run by bench/normalize.py with HTA's own environment."""

import sys

from hta.trace_analysis import TraceAnalysis

analysis = TraceAnalysis(trace_files={0: sys.argv[1]})
print(f"events {len(analysis.t.get_trace(0))}")
