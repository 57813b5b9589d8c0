"""Events of a run, and warnings of a run, a row or a search, as data: a class for each kind.

Each class registers its kind when its module is imported.
"""
