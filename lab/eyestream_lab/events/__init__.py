"""Fixations, saccades and blinks by published detectors, and scores of them where labels are."""
