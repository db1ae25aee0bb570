"""Faults of histories: when a pseudonym begins and ends, and what is taken off its sessions."""

import dataclasses
from typing import Any

from tests.rigs.seams import original
from tools.verification.auditing.planting import Patch, fault


@fault("a history counts its own session", "histories")
def _() -> list[Patch]:
    plain = original("OverHistory.off")

    def own(self: Any, chunk: Any) -> Any:
        plain(self, chunk)
        return self._history.after(self._level).off(chunk)

    return [("OverHistory.off", own)]


@fault("no history is taken off", "histories")
def _() -> list[Patch]:
    return [("OverHistory.off", lambda self, chunk: chunk)]


@fault("a pseudonym does not end", "histories")
def _() -> list[Patch]:
    def going_on(self: Any, wearer: int) -> bool:
        passed = self._passed.get(wearer, 0)
        self._passed[wearer] = passed + 1
        return bool(passed == 0)

    plain = original("History.after")

    def after(self: Any, level: Any, stated: Any = None) -> Any:
        public = dataclasses.replace(self.remembering, sessions=self.sessions + 3)
        return plain(dataclasses.replace(self, remembering=public), level)

    return [("order's first of a pseudonym", going_on), ("History.after", after)]


@fault("the first session of a pseudonym leaves", "histories")
def _() -> list[Patch]:
    return [
        ("order's first of a pseudonym", lambda self, wearer: False),
        ("OverHistory.complete", property(lambda self: True)),
        ("OverHistory.off", lambda self, chunk: chunk),
    ]
