"""The page of the documentation that the statements of one version of MQTT make."""

from collections.abc import Iterable, Sequence

__all__ = ["rendered"]


def rendered(
    title: str,
    *,
    about: Sequence[str],
    shown: Iterable[Sequence[str]],
    refusal: str,
    refused: tuple[str, Iterable[Sequence[str]]],
    taken: Iterable[tuple[bytes, str]],
    scope: Iterable[Sequence[str]],
) -> str:
    """The page: what is shown by which test, what is refused (its columns and rows), taken, and out of scope."""
    columns, cases = refused
    lines = [
        title,
        "",
        *about,
        "",
        *_table("MQTT- | statement | shown by", shown),
        "",
        "## What a broker may not send",
        "",
        refusal,
        "",
        *_table(columns, cases),
        "",
        "## What comes close and is taken",
        "",
        *_table("what | bytes, behind CONNACK", ((what, f"`{data.hex(' ')}`") for data, what in taken)),
        "",
        "## Out of scope",
        "",
        *_table("MQTT- | why", scope),
    ]
    return "\n".join(lines) + "\n"


def _table(columns: str, rows: Iterable[Sequence[str]]) -> list[str]:
    rule = "|---" * (columns.count("|") + 1) + "|"
    return [f"| {columns} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]
