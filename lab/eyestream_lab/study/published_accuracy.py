"""Accuracies that Bozkir et al. (PLOS ONE 2021, tables 1 to 5) print, by majority vote.

Other people, other recordings, k chosen from the data and sensitivities between participants: compare orders and
slopes. Leave one person out for documents; first against second half of a recording for people. Windows of 30 s, one
row each 0.5 s, on MPIIDPEye: 20 people, three documents.
"""

__all__ = ["DATA_SET", "PUBLISHED"]

DATA_SET = "MPIIDPEye, 20 people"

_Row = tuple[float, float, float, float]

PUBLISHED: dict[tuple[str, str, int, float], _Row] = {
    ("document", "FPA", 0, 0.48): (0.50, 0.63, 0.82, 0.87),
    ("document", "FPA", 0, 4.8): (0.50, 0.61, 0.81, 0.87),
    ("document", "FPA", 0, 48.0): (0.52, 0.64, 0.83, 0.88),
    ("document", "CFPA", 32, 0.48): (0.39, 0.37, 0.45, 0.44),
    ("document", "CFPA", 32, 4.8): (0.40, 0.44, 0.46, 0.44),
    ("document", "CFPA", 32, 48.0): (0.71, 0.69, 0.66, 0.66),
    ("document", "CFPA", 64, 0.48): (0.41, 0.36, 0.45, 0.45),
    ("document", "CFPA", 64, 4.8): (0.40, 0.41, 0.44, 0.45),
    ("document", "CFPA", 64, 48.0): (0.70, 0.70, 0.66, 0.66),
    ("document", "CFPA", 128, 0.48): (0.36, 0.33, 0.45, 0.45),
    ("document", "CFPA", 128, 4.8): (0.37, 0.35, 0.44, 0.45),
    ("document", "CFPA", 128, 48.0): (0.69, 0.68, 0.64, 0.66),
    ("document", "DCFPA", 32, 0.48): (0.51, 0.37, 0.46, 0.44),
    ("document", "DCFPA", 32, 4.8): (0.47, 0.35, 0.47, 0.43),
    ("document", "DCFPA", 32, 48.0): (0.48, 0.36, 0.47, 0.45),
    ("document", "DCFPA", 64, 0.48): (0.61, 0.45, 0.43, 0.41),
    ("document", "DCFPA", 64, 4.8): (0.56, 0.41, 0.43, 0.41),
    ("document", "DCFPA", 64, 48.0): (0.59, 0.40, 0.44, 0.43),
    ("document", "DCFPA", 128, 0.48): (0.64, 0.45, 0.46, 0.48),
    ("document", "DCFPA", 128, 4.8): (0.69, 0.50, 0.44, 0.46),
    ("document", "DCFPA", 128, 48.0): (0.60, 0.42, 0.45, 0.46),
    ("person", "FPA", 0, 0.48): (1.0, 1.0, 1.0, 1.0),
    ("person", "FPA", 0, 4.8): (1.0, 1.0, 1.0, 1.0),
    ("person", "FPA", 0, 48.0): (1.0, 1.0, 1.0, 1.0),
    ("person", "CFPA", 32, 0.48): (0.15, 0.08, 0.44, 0.37),
    ("person", "CFPA", 32, 48.0): (0.72, 0.16, 0.87, 0.92),
    ("person", "CFPA", 128, 0.48): (0.16, 0.05, 0.39, 0.36),
    ("person", "CFPA", 128, 48.0): (0.70, 0.16, 0.74, 0.88),
    ("person", "DCFPA", 32, 0.48): (0.06, 0.10, 0.39, 0.37),
    ("person", "DCFPA", 32, 48.0): (0.10, 0.10, 0.40, 0.38),
    ("person", "DCFPA", 128, 0.48): (0.09, 0.05, 0.24, 0.28),
    ("person", "DCFPA", 128, 48.0): (0.10, 0.05, 0.22, 0.25),
}
"""By task, mechanism, rows a chunk (0: the whole recording) and epsilon of a chunk or recording: k-NN, SVM, decision
tree, random forest."""
