"""One audit: everything that is tried, in order, under a budget of time; whatever the code does, a report comes.

Each part asks the child for outputs and judges them elsewhere. A fault of the child is a finding; the child is replaced
and the parts that can go on do.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.audit.bound import Draw, bound, resolution, screen
from eyestream_lab.audit.carryover import PRICE, carried, previous
from eyestream_lab.audit.child import Child, ChildDraws, Fault
from eyestream_lab.audit.estimate import CONFIDENCE
from eyestream_lab.audit.inputs import Neighbours, neighbours, shapes
from eyestream_lab.audit.report import Report
from eyestream_lab.audit.reuse import repeated, shared
from eyestream_lab.audit.subject import Subject
from eyestream_lab.audit.surface import LEAST_NS, interleaved, surface, surface_inputs, unlike

Array = NDArray[np.float64]
Progress = Callable[[str], None]

_BATCH_S, _PIPE_VALUES, _KEPT_VALUES = 0.25, 1 << 20, 1 << 23
_FINALISTS, _LEAST = 3, 40
_LARGEST = 1e75
"""Outputs beyond are taken for this, which hides nothing that is looked at and whose square is finite."""


class Bench:
    """The child at work, replaced after a fault; counts what is drawn and notes what is printed."""

    def __init__(self, subject: Subject, report: Report) -> None:
        self._subject, self._report = subject, report
        self._child: Child | None = None

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *exception: object) -> None:
        self.renew()

    def renew(self) -> None:
        """End the child; the next draw starts another."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def child(self) -> Child:
        """The child, started if there is none."""
        if self._child is None:
            self._child = Child(self._subject)
        return self._child

    def draw(self, inputs: Array, order: NDArray[np.int64], child: Child | None = None) -> ChildDraws:
        """One request, its prints and its non-finite values noted; the latter raise `Fault` then."""
        drawn = (child or self.child()).draw(inputs, order)
        self._report.draws += len(order)
        if drawn.printed:
            self._report.add("extra-output", "bytes were written beside the answers")
        if not np.isfinite(drawn.outputs).all():
            raise Fault("not-finite", "NaN or an infinity came out")
        return replace(drawn, outputs=np.clip(drawn.outputs, -_LARGEST, _LARGEST))


@dataclass(frozen=True)
class AuditPlan:
    """How much is tried.

    Attributes
    ----------
    seconds : about how long the draws may take.
    screening, most : outputs under either chunk of a pair, at most, in the screening and of the best pairs.
    surface, reuse, state, timing : the same for the other parts.
    """

    seconds: float
    screening: int
    most: int
    surface: int
    reuse: int
    state: int
    timing: int


FULL = AuditPlan(40.0, 2_000, 60_000, 20_000, 6_000, 40_000, 400)
QUICK = AuditPlan(6.0, 500, 12_000, 6_000, 2_000, 6_000, 200)
PARTS = ("time", "noise reuse", "float surface", "epsilon", "state across chunks")
"""Parts of an audit, after the form of the outputs, which every part needs."""


def audit(
    subject: Subject,
    plan: AuditPlan = FULL,
    progress: Progress = lambda text: None,
    parts: tuple[str, ...] = PARTS,
) -> Report:
    """Audit `subject` from outside; `parts` of `PARTS` alone, if given.

    Raises
    ------
    ConfigError
        There is nothing under the subject's name. Nothing else: what the audited code does is in the report.
    """
    began = time.monotonic()
    report = Report(subject.name, subject.kind, subject.features, subject.n, subject.epsilon, CONFIDENCE)
    with Bench(subject, report) as bench:
        session = _Audit(subject, plan, report, bench)
        for name in ("form", *parts):
            part: Callable[[], None] = getattr(session, _METHODS[name])
            progress(f"{name} ({time.monotonic() - began:.0f} s)")
            if name != "form" and not session.ready(name):
                report.not_tested.append(name)
                continue
            try:
                with np.errstate(all="ignore"):  # whatever numbers came out
                    part()
            except Fault as fault:
                report.add(fault.finding, f"{fault.what}, in the test of {name}")
                report.not_tested.append(name)
                bench.renew()
            else:
                report.tested.append(name)
    report.seconds = round(time.monotonic() - began, 1)
    return report


_METHODS = {
    "form": "form",
    "time": "time",
    "noise reuse": "reuse",
    "float surface": "surface",
    "epsilon": "epsilon",
    "state across chunks": "state",
}


class _Audit:
    """The parts of one audit."""

    def __init__(self, subject: Subject, plan: AuditPlan, report: Report, bench: Bench) -> None:
        self._subject, self._plan, self._report, self._bench = subject, plan, report, bench
        self._good: dict[str, Array] = {}
        self._pairs: list[Neighbours] = []
        self._call_s = 1e-4
        self._same = False

    def ready(self, part: str) -> bool:
        """Whether the chunks that a part needs are released at all."""
        return "generic" in self._good and (bool(self._pairs) or part not in {"epsilon", "state across chunks"})

    def _calls(self, share: float, most: int) -> int:
        """How many calls a share of the time allows."""
        return int(min(max(share * self._plan.seconds / self._call_s, 1), most))

    def _take(self, child: Child, inputs: Array, order: NDArray[np.int64]) -> Array:
        """Outputs (m, F, n), in requests of moderate size."""
        size = int(max(min(_BATCH_S / self._call_s, _PIPE_VALUES / inputs[0].size), 1))
        pieces = [order[begin : begin + size] for begin in range(0, len(order), size)]
        return np.concatenate([self._bench.draw(inputs, piece, child).outputs for piece in pieces])

    def _many(self, chunk: Array, count: int) -> Array:
        """(count, F, n) outputs for one chunk."""
        return self._take(self._bench.child(), chunk[None], np.zeros(count, dtype=np.int64))

    def _draw_for(self, pair: Neighbours) -> Draw:
        inputs = np.stack([pair.first, pair.second])

        def draw(count: int) -> tuple[Array, Array]:
            outputs = self._take(self._bench.child(), inputs, np.arange(2 * count, dtype=np.int64) % 2)
            return outputs[0::2], outputs[1::2]

        return draw

    def form(self) -> None:
        """Every kind of chunk by itself: what fails, and whether what comes out always has one form."""
        forms: dict[str, list[str]] = {}
        for name, chunk in shapes(self._subject).items():
            began = time.monotonic()
            try:
                self._bench.draw(chunk[None], np.zeros(1, dtype=np.int64))  # alone: what comes after it is seen
                drawn = self._bench.draw(chunk[None], np.zeros(3, dtype=np.int64))
            except Fault as fault:
                self._report.add(fault.finding, f"{fault.what}, chunk: {name}")
                self._bench.renew()
                forms[name] = [fault.what] if fault.finding == "wrong-shape" else []
                if fault.finding == "hang" and sum(f.name == "hang" for f in self._report.found) > 2:
                    break
                continue
            self._call_s = max((time.monotonic() - began) / 3, 1e-6)
            forms[name], self._good[name] = drawn.forms[0], chunk
        for name, seen in forms.items():
            if len(seen) > 1:
                self._report.add("changing-form", f"{' and '.join(seen)}, chunk: {name}")
        kinds = {seen[0] for seen in forms.values() if len(seen) == 1}
        if len(kinds) > 1:
            self._report.add("data-dependent-size", " or ".join(sorted(kinds)))
        if "generic" in self._good:
            self._pace()
            self._admit()

    def _pace(self) -> None:
        """How long a call takes."""
        for count in (20, 200):
            if count * self._call_s < 1.0:
                began = time.monotonic()
                self._bench.draw(self._good["generic"][None], np.zeros(count, dtype=np.int64))
                self._call_s = max((time.monotonic() - began) / count, 1e-6)

    def _admit(self) -> None:
        """The pairs of neighbours of which both give chunks."""
        for pair in neighbours(self._subject):
            try:
                self._bench.draw(np.stack([pair.first, pair.second]), np.array([0, 1], dtype=np.int64))
            except Fault as fault:
                self._report.add(fault.finding, f"{fault.what}, chunks: {pair.name}")
                self._bench.renew()
                if fault.finding == "hang":
                    break
                continue
            self._pairs.append(pair)

    def time(self) -> None:
        """The time of a release of every kind of chunk, against that of an ordinary one."""
        others = {name: chunk for name, chunk in self._good.items() if name != "generic"}
        least = LEAST_NS.get(self._subject.kind, 1000.0)
        times = max(self._calls(0.1, 2 * len(others) * self._plan.timing) // (2 * max(len(others), 1)), 8)
        suspects = others
        for repeat in range(3):
            if not suspects:
                return
            inputs = np.stack([self._good["generic"], *suspects.values()])
            order = interleaved(len(suspects), times if repeat == 0 else max(times, self._plan.timing // 2))
            spent = self._bench.draw(inputs, order).spent_ns
            seen = {name: self._unlike(spent, order, index, least) for index, name in enumerate(suspects, 1)}
            suspects = {name: others[name] for name, what in seen.items() if what is not None}
        for name in suspects:
            self._report.add("data-dependent-time", f"{seen[name]}, chunk: {name}")

    def _unlike(self, spent: NDArray[np.int64], order: NDArray[np.int64], index: int, least: float) -> str | None:
        """A pair stands in two neighbouring places: those of this kind and of the ordinary chunk beside it."""
        pairs, times = order.reshape(-1, 2), spent.reshape(-1, 2)
        own = (pairs == index).any(axis=1)
        return unlike(times[own][pairs[own] == 0], times[own][pairs[own] == index], least)

    def reuse(self) -> None:
        """Noise over calls, in two processes that start alike, in copies of one and in threads."""
        chunk = self._good["generic"]
        most = max(min(self._plan.reuse, _KEPT_VALUES // 4 // chunk.size), _LEAST)
        outputs = self._many(chunk, max(self._calls(0.08, most), _LEAST))
        different = len(np.unique(outputs.reshape(len(outputs), -1), axis=0))
        self._same = different == 1
        self._report.outputs_compared, self._report.outputs_repeated = len(outputs), len(outputs) - different
        self._note("noise-reuse", repeated(outputs))
        some = max(self._calls(0.01, 300), 10)
        firsts = []
        for _ in range(2):
            self._bench.renew()
            firsts.append(self._many(chunk, some))
        self._note("noise-reuse", shared(firsts[0], firsts[1], "two processes"))
        if self._subject.kind == "program":
            return
        for how, between in (("fork", "two copies of the process (fork)"), ("threads", "two threads")):
            try:
                first, second = self._bench.child().copies(how, chunk, some)
                self._note("noise-reuse", shared(first, second, between))
            except Fault:
                self._report.not_tested.append(f"noise reuse in {between}")
                self._bench.renew()

    def surface(self) -> None:
        """The low bits of outputs."""
        pilot = self._many(self._good["generic"], 50)
        away = np.abs(pilot - np.median(pilot, axis=0))
        spread = np.maximum(np.median(away, axis=(0, 2)), 0.3 * pilot.std(axis=0).mean(axis=1))  # most may be clipped
        pair = surface_inputs(self._subject, spread[:, None])
        most = max(min(self._plan.surface, _KEPT_VALUES // pair.first.size), _LEAST)
        for evidence in surface(*self._draw_for(pair)(max(self._calls(0.08, most), _LEAST)))[:3]:
            self._report.add("float-surface", evidence)

    def epsilon(self) -> None:
        """The lower bound on epsilon."""
        began, count = time.monotonic(), 40
        screen(self._pairs[:1], self._draw_for, count)
        self._call_s = max(self._call_s, (time.monotonic() - began) / (4 * count))
        calls = self._calls(0.2 / (2 * len(self._pairs)), self._plan.screening)
        ranked = screen(self._pairs, self._draw_for, max(calls, _LEAST))
        calls = max(self._calls(0.35 / (2 * _FINALISTS), self._plan.most), 2 * _LEAST)
        confidence = 1 - (1 - CONFIDENCE) / _FINALISTS
        most = max(_KEPT_VALUES // 4 // self._pairs[0].first.size, _LEAST)
        tested = [bound(pair.name, self._draw_for(pair), calls, confidence, most) for _, pair in ranked[:_FINALISTS]]
        best = max(tested, key=lambda one: one.bound.epsilon)
        report, found = self._report, max(best.bound.epsilon, 0.0)
        report.epsilon_lower_bound = round(found, 4)
        report.epsilon_resolution = round(resolution(best.draws, best.partitions, confidence), 4)
        report.neighbours, report.event = best.pair, best.bound.partition
        if best.bound.epsilon > self._subject.epsilon:
            report.add("epsilon-exceeded", f"at least {found:.3f} by {best.bound.partition}, chunks: {best.pair}")
            if self._same:
                report.add("noise-reuse", "the same chunk always gives the same output")

    def state(self) -> None:
        """Test for traces of the chunks before."""
        calls = self._calls(0.2 / PRICE, self._plan.state)
        known = {pair.name for pair in self._pairs}
        pairs = [pair for pair in previous(self._subject) if pair.name in known]
        self._bench.renew()
        with Child(self._subject) as first, Child(self._subject) as second:
            self._note(
                "state-across-chunks", carried(self._subject, pairs, (first, second), self._take, max(calls, _LEAST))
            )

    def _note(self, name: str, evidence: str | None) -> None:
        if evidence is not None:
            self._report.add(name, evidence)
