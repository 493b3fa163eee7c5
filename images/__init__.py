"""Where trials run: a catalogue of base images, our images on top of them, and what is inside, measured.

``catalogue`` knows bases, ``recipe`` is a build as a value with its cache key, ``build`` carries it out,
``resolve`` turns the word of a job spec into one exact image, ``inspect`` runs an image to see what it has.
"""
