"""Figures of `lab/eyestream_lab/words/TASKS.md`, section 6: who is found again among simulated people.

python -m tools.make.task_simulation
"""

from collections.abc import Mapping

import numpy as np

from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.linking.people import Parts
from tests.rigs.linking.pseudonyms import link_pseudonyms
from tests.rigs.linking.release import kept_apart, learned, raw, residual
from tests.rigs.linking.words import link_words, worded

PEOPLE, SESSIONS, SEED = 100, 10, 5


def say(label: str, areas: Mapping[str, float]) -> None:
    print(label, {name: round(area, 2) for name, area in areas.items()}, flush=True)


def condition(parts: Parts) -> None:
    """All ways of releasing people with these parts."""
    exact, left = learned(parts), learned(parts, trust=np.inf)
    coded = {per_minute: learned(parts, epsilon, SeededNoise(1)) for per_minute, epsilon in ((18, 9.6), (9, 4.8))}
    say("raw", link_pseudonyms(left.seen(PEOPLE, SESSIONS, SEED, raw), parts))
    say("residual, spread left", link_pseudonyms(left.seen(PEOPLE, SESSIONS, SEED, residual), parts))
    say("residual", link_pseudonyms(exact.seen(PEOPLE, SESSIONS, SEED, residual), parts))
    for per_minute, public in coded.items():
        say(f"directions, {per_minute} a minute", link_pseudonyms(public.seen(PEOPLE, SESSIONS, SEED, residual), parts))
    say("the same at 18, three sessions", link_pseudonyms(coded[18].seen(PEOPLE, 3, SEED, residual), parts))
    say("a history for each task", link_pseudonyms(exact.seen(PEOPLE, SESSIONS, SEED, kept_apart), parts))
    for label, words, epsilon in (("a chunk, 18 a minute", 8, 9.6), ("a session, epsilon 4", 1, 4.0)):
        say(f"a word {label}", link_words(worded(exact, epsilon, SeededNoise(3), parts=words), PEOPLE, SESSIONS, SEED))


def main() -> None:
    for by_task in (0.0, 0.1, 0.25):
        print(f"person-by-task {by_task}")
        condition(Parts(person=0.3, by_task=by_task, spread=0.1))
    for task in (0.5, 1.0):
        parts = Parts(person=0.3, by_task=0.25, spread=0.1, task=task)
        words = worded(learned(parts), 4.0, SeededNoise(3))
        print(f"task {task}, a word a session: {words.right(60, 8, 77):.2f} right")
        for sessions in (10, 50):
            say(f"{sessions} sessions", link_words(words, PEOPLE, sessions, SEED))


if __name__ == "__main__":
    main()
