"""Container images: a catalogue of bases, profrun's images built on them, and what is measured inside.

``catalogue`` knows bases, ``recipe`` is a build as a value with its cache key, ``build`` carries it out,
``resolve`` turns the word of a job spec into one exact image, ``inspect`` runs an image to see what it has.
"""
