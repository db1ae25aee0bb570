"""The commands that the laboratory adds to `eyestream`."""

COMMANDS = {
    "demo": ("eyestream_lab.demo.command", "watch it work: broker, recording, sidecar and application in one terminal"),
    "advise": ("eyestream_lab.cli.advise", "recommend a calibration and an epsilon, and show what to expect"),
    "calibrate": ("eyestream_lab.cli.calibrate", "make a calibration from public recordings"),
    "fit": ("eyestream_lab.cli.fit", "report which features of a tracker fit a calibration"),
    "privatize": ("eyestream_lab.cli.privatize", "release whole recordings privately, file to file"),
    "gatekeeper": ("eyestream_lab.cli.gatekeeper", "answer questions about released gaze"),
    "inspect": ("eyestream_lab.cli.inspect", "look at a file of gaze, and propose the profile that reads it"),
    "extract": ("eyestream_lab.cli.extract", "recordings of gaze to rows of the 52 features"),
    "events": (
        "eyestream_lab.cli.events",
        "fixations, saccades and blinks of recordings of gaze, scored where labels are",
    ),
    "simulate": ("eyestream_lab.cli.simulate", "make recordings of people who do not exist"),
    "study": ("eyestream_lab.cli.study", "utility of the mechanisms and attacks on them, as a report"),
    "benchmark": (
        "eyestream_lab.cli.benchmark",
        "judge systems that hide the wearer's identity, yours and others', on a corpus",
    ),
    "audit": (
        "eyestream_lab.cli.audit",
        "attack a mechanism from outside: a Python function, a program, or one of ours",
    ),
}
"""Module and help text of each command, by its name."""
