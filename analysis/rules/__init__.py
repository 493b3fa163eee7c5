"""Rules that look for known problems in a trace, and the diagnosis that runs all of them.

``rule`` says what a rule is, ``context`` what it may ask of a trace; the rules themselves are in the modules
that ``catalogue`` lists, and ``diagnose`` runs them. ``docs`` writes a page for each rule.
"""
