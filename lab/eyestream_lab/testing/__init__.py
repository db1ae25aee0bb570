"""For tests of a mechanism or a source of your own.

- `mechanisms`: checks that every mechanism must pass.
- `noise`: noises that are the same in each run. They have no guarantee, and what is released with them says so.
- `gaze_lives` and `gaze_sources`: a source of gaze at work beside a fake tracker.
- `clocks`: a clock that a test moves, and waiting for a condition.

Nothing else in the package imports these modules.
"""
