"""The course: checks that answer back to the exercises of the notebooks.

    from magnet_lab.course import check
    check.mask(my_mask)

runs the function on growing cases and says of the first wrong one what was expected, what came and what idea is behind
it. `python -m magnet_lab.course` tries every check on wrong answers that students give, and on right ones.
"""

from magnet_lab.course import check  # noqa: F401 - so that `ml.course.check` is there
