"""Answers as text for people: terminal, HTML, Markdown and JUnit XML.

Every function here is given values (a summary, findings, a comparison, the content of a report) and returns
text. None of them opens a trace, reads the folder of a run, prints or writes a file. Numbers become text with
``profrun.contract.units``.

* ``terminal`` shows a summary and a diagnosis, ``compare_text`` and ``blocking_text`` a comparison.
  ``terminal_layout`` lays them out.
* ``compare_files`` makes Markdown and JUnit XML of a comparison.
* ``page`` makes the HTML report of what ``content`` holds: ``run_page`` and ``trace_page`` make its tabs,
  modules named ``*_section`` their sections, and ``html``, ``html_table`` and ``charts`` the elements.
"""
