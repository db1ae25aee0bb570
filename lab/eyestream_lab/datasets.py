"""Corpora out: whole data sets of people at tasks, released by one of several systems, with what is promised.

    corpus = open_folder(Path("people"), ROWS)
    promise = privatize_corpus(make_system("k-same-select", k=4), corpus, Path("out"))
    promise.claim.kind                # "k-anonymity"

The folder of a corpus has `participants.tsv` and the recordings that it names, or is one of BIDS or GazeBase. The
folder that is made is of the first layout, with `claim.json` and `CLAIM.md` beside the recordings. `ROWS` is for rows
of features, and `FIXATIONS` for tables of fixations. `gaze_kind(load_profile("degrees"))` is for recordings of gaze,
and `rows_of_gaze` for rows that are made of them.
"""

from eyestream.rim.files.profiles import load_profile
from eyestream_lab.corpora.claims import Promise
from eyestream_lab.corpora.corpus import Dataset, Part, Survey, open_corpus
from eyestream_lab.corpora.kinds import FIXATIONS, MAPS, ROWS, Kind, Map, gaze_kind, rows_of_gaze
from eyestream_lab.corpora.layouts import open_folder
from eyestream_lab.corpora.registry import SYSTEMS, SystemEntry, make_system
from eyestream_lab.corpora.run import privatize_corpus
from eyestream_lab.corpora.system import System, Unit

__all__ = [
    "FIXATIONS",
    "MAPS",
    "ROWS",
    "SYSTEMS",
    "Dataset",
    "Kind",
    "Map",
    "Part",
    "Promise",
    "Survey",
    "System",
    "SystemEntry",
    "Unit",
    "gaze_kind",
    "load_profile",
    "make_system",
    "open_corpus",
    "open_folder",
    "privatize_corpus",
    "rows_of_gaze",
]
