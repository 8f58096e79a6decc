"""The parts on one machine, requests of the client, and messages between machines."""

from __future__ import annotations

import asyncio
import contextvars
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from distributed import get_worker, protocol

from .messages import Response, error_response, result
from .part import Part, StaleError
from .part_pass import Mailbox, Pass, PassRequest, PassResult, Payload, Send

_protocol: Any = protocol  # untyped
POLL_INTERVAL = 2.0  # seconds between checks that the actor was not released


class UnreachableError(Exception):
    """Another part is unreachable."""

    def __init__(self, part: int) -> None:
        super().__init__(part)
        self.part = part


class Message(NamedTuple):
    """Values for a part, and the keys of the cotangents that the reply contains."""

    part: int
    attempt: int
    payload: Payload
    awaited_keys: list[Any]


class Reply(NamedTuple):
    """The reply to a message: cotangents."""

    payload: Payload


class PartServer:
    """The parts on one machine. Errors are returned, not raised; see `messages`."""

    def __init__(self) -> None:
        self.parts: dict[int, Part] = {}
        self._mailboxes: dict[int, Mailbox] = {}
        self._passes: dict[int, asyncio.Task[PassResult]] = {}

    def install(self, part: int, pickled: bytes) -> Response:
        """Install a part."""
        return _call_for_response(self._install, part, pickled)

    def _install(self, part: int, pickled: bytes) -> None:
        self.parts[part] = Part(part, *pickle.loads(pickled))

    def drop(self, part: int) -> Response:
        """Drop a part."""
        self.parts.pop(part, None)
        return result(None)

    def call(self, part: int, attempt: int, method: str, *args: Any) -> Response:
        """Call a method of a part, and drop the state of earlier attempts."""
        return _call_for_response(self._call, part, attempt, method, args)

    def _call(self, part: int, attempt: int, method: str, args: tuple[Any, ...]) -> Any:
        installed_part = self.parts[part]
        installed_part.begin_attempt(attempt)
        return getattr(installed_part, method)(*args)

    # ---------------------------------------------------------------------------------------- passes

    async def pass_through(self, part: int, request: PassRequest) -> Response:
        """Run a pass through a part. A newer pass, or the release of the actor, cancels it."""
        task: Any = None
        try:
            installed_part = self.parts[part]
            installed_part.begin_attempt(request.attempt)
            if part in self._passes:
                self._passes[part].cancel()
            mailbox = self._mailbox_of(part, request.attempt)
            current_pass = Pass(installed_part, request, mailbox, self._compute, self._make_sender(request))
            task = self._passes[part] = asyncio.ensure_future(current_pass.run())
            while not (await asyncio.wait({task}, timeout=POLL_INTERVAL))[0]:
                if not self._is_alive():
                    task.cancel()
            if task.cancelled():
                raise StaleError
            return result(task.result())
        except UnreachableError as error:
            return Response(("lost", error.part))
        except Exception as error:
            return error_response(error)
        finally:
            if task is not None:
                task.cancel()

    def _mailbox_of(self, part: int, attempt: int) -> Mailbox:
        """Return the mailbox of a part for an attempt; those of earlier attempts are closed."""
        mailbox = self._mailboxes.get(part)
        if mailbox is None or mailbox.attempt < attempt:
            if mailbox is not None:
                mailbox.close()
            mailbox = self._mailboxes[part] = Mailbox(attempt)
        if mailbox.attempt > attempt:
            raise StaleError
        return mailbox

    def _make_sender(self, request: PassRequest) -> Send:
        local_parts = {part for part, peer in request.peers.items() if part in self.parts and self._is_local(peer)}

        async def send(part: int, payload: Payload, awaited_keys: list[Any]) -> Payload:
            message = Message(part, request.attempt, payload, awaited_keys)
            return await (self._deliver_locally(message) if part in local_parts else self._send(*request.peers[part], message))

        return send

    async def _deliver_locally(self, message: Message) -> Payload:
        """Put values into the mailbox of a part on this machine, and wait for their cotangents."""
        mailbox = self._mailbox_of(message.part, message.attempt)
        mailbox.put(message.payload)
        return {key: await mailbox.take(key) for key in message.awaited_keys}

    # ------------------------------------------------------------------------- overridden by `PartActor`

    def _is_local(self, peer: tuple[str, str]) -> bool:
        return True

    def _is_alive(self) -> bool:
        return True

    async def _compute(self, function: Callable[..., Any], *args: object) -> Any:
        """Return the result of a function that may take long."""
        return function(*args)

    async def _send(self, address: str, name: str, message: Message) -> Payload:
        raise UnreachableError(message.part)


class PartActor(PartServer):
    """A part server that is a Dask actor. Its parts compute in its single thread, in the order in which they become ready."""

    def _is_local(self, peer: tuple[str, str]) -> bool:
        return get_worker().state.actors.get(peer[1]) is self

    def _is_alive(self) -> bool:
        return any(actor is self for actor in get_worker().state.actors.values())

    async def _compute(self, function: Callable[..., Any], *args: object) -> Any:
        run = contextvars.copy_context().run
        return await asyncio.get_running_loop().run_in_executor(get_worker().executors["actor"], run, function, *args)

    async def _send(self, address: str, name: str, message: Message) -> Payload:
        request = {"function": "deliver", "actor": name, "args": [_protocol.to_serialize(message)], "kwargs": {}}
        try:
            response = await get_worker().rpc(address).actor_execute(**request)
        except (OSError, KeyError) as error:  # the machine is lost, or another process has its address
            raise UnreachableError(message.part) from error
        if response["status"] != "OK":
            raise response["exception"]
        payload: Payload = response["result"].payload
        return payload

    async def deliver(self, message: Message) -> Reply:
        """Receive values from another machine; reply with their cotangents, or without any if the pass was abandoned."""
        task = asyncio.ensure_future(self._deliver_locally(message))
        try:
            while not (await asyncio.wait({task}, timeout=POLL_INTERVAL))[0]:
                if not self._is_alive():
                    task.cancel()
            return Reply(task.result())
        except (StaleError, asyncio.CancelledError):
            if not task.done():  # this call itself was cancelled
                raise
            return Reply({})  # the pass was abandoned
        finally:
            task.cancel()


def _call_for_response(function: Callable[..., Any], *args: object) -> Response:
    try:
        return result(function(*args))
    except Exception as error:
        return error_response(error)
