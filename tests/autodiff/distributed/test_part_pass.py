"""Tasks and mailboxes of a pass that is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from autodiff.distributed.split.part_pass import Mailbox, TaskGroup


def test_task_group_with_a_cancelled_task_is_cancelled() -> None:
    ended = []

    async def other() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            ended.append("other")

    async def main() -> None:
        mailbox = Mailbox(1)
        asyncio.get_running_loop().call_later(0.01, mailbox.close)
        await TaskGroup().run(mailbox.take("value"), other())

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert ended == ["other"]


def test_task_group_whose_last_task_is_cancelled_is_cancelled() -> None:
    async def main() -> None:
        mailbox = Mailbox(1)
        mailbox.close()
        await TaskGroup().run(mailbox.take("value"))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


@pytest.mark.parametrize("method", ["take", "peek"])
def test_mailbox_read_after_close_is_cancelled(method: str) -> None:
    async def main() -> None:
        mailbox = Mailbox(1)
        mailbox.put({"first": 1})
        assert await mailbox.peek("first") == 1
        mailbox.close()
        mailbox.put({"second": 2})
        await asyncio.wait_for(getattr(mailbox, method)("second"), 5)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
