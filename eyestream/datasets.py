"""Corpora out: whole data sets of people at tasks, released by one of several systems, with what is promised.

    corpus = open_corpus(Path("people"), ROWS)
    claim = privatize_corpus(make_system("k-same-select", k=4), corpus, Path("out"))
    claim.promise                     # "k-anonymity within the corpus"

The folder of a corpus has `participants.tsv` and the recordings that it names; so has the folder that is made, with
`claim.json` and `CLAIM.md` beside them. `gaze_kind(profile)` is for recordings of gaze, `ROWS` for rows of features.
"""

from eyestream.offline.corpora.claims import Claim
from eyestream.offline.corpora.corpus import Corpus, Part, Survey, open_corpus
from eyestream.offline.corpora.kinds import MAPS, ROWS, Kind, Map, gaze_kind
from eyestream.offline.corpora.registry import SYSTEMS, SystemEntry, make_system
from eyestream.offline.corpora.run import privatize_corpus
from eyestream.offline.corpora.system import System, Unit

__all__ = [
    "MAPS",
    "ROWS",
    "SYSTEMS",
    "Claim",
    "Corpus",
    "Kind",
    "Map",
    "Part",
    "Survey",
    "System",
    "SystemEntry",
    "Unit",
    "gaze_kind",
    "make_system",
    "open_corpus",
    "privatize_corpus",
]
