"""A command that is stopped by SIGTERM tidies up in its own order, without a complaint."""

import asyncio
import signal

import pytest

from eyestream_lab.demo.serving import run_until_stopped


def test_sigterm_leaves_a_server_time_to_end(caplog: pytest.LogCaptureFixture) -> None:
    """A handler that raises instead cancels the server's task first, and asyncio complains of it."""
    order: list[str] = []

    async def body() -> None:
        there, over = asyncio.Event(), asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there.set()
            order.append(f"served {await reader.read()!r}")
            writer.close()
            over.set()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            await there.wait()
            asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)
            try:
                await asyncio.Event().wait()
            finally:
                writer.close()
                await over.wait()

    with pytest.raises(SystemExit) as stopped:
        run_until_stopped(body())
    assert stopped.value.code == 143
    assert order == ["served b''"]
    assert caplog.records == []
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_what_ends_by_itself_is_given_back() -> None:
    assert run_until_stopped(asyncio.sleep(0, "done")) == "done"
