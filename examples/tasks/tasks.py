"""What somebody does, as an application reads it: `python tasks.py mqtt://localhost:1883 hmd-1`.

Prints each released word with its odds, and what the words of the session say together. Ends when the stream's budget
is spent, or after `--chunks N`.
"""

import argparse
import asyncio

from eyestream.sdk.subscriber import Chunk, subscribe
from eyestream_lab.words.view import Words, posterior


async def watch(broker: str, device: str, stream: str, most: int) -> None:
    """Print `most` words."""
    session: list[Chunk] = []
    async with subscribe(broker, device, stream=stream) as chunks:
        async for chunk in chunks.until_exhausted():
            said = chunk.view
            if not isinstance(said, Words):
                raise SystemExit(f"{device}/{stream} releases {', '.join(chunk.units)}, no words: see docs/tasks.md")
            if session and session[-1].session != chunk.session:
                session.clear()
            session.append(chunk)
            together = posterior(session)
            likeliest = max(together, key=together.__getitem__)
            print(
                f"{chunk.t[0]:6.0f} s  {said.word}  {said.odds[said.word]:.2f}   session: {likeliest} "
                f"{together[likeliest]:.2f}",
                flush=True,
            )
            most -= 1
            if most == 0:
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("broker")
    parser.add_argument("device")
    parser.add_argument("--stream", default="features")
    parser.add_argument("--chunks", type=int, default=-1)
    given = parser.parse_args()
    asyncio.run(watch(given.broker, given.device, given.stream, given.chunks))
