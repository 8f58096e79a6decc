"""A machine: its parts, the requests that it answers, and the values that machines send to each other."""

from __future__ import annotations

import asyncio
import contextvars
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from distributed import get_worker, protocol

from .part import Part, StaleError
from .passing import Mail, Order, Parcel, Pass, PassResult, Send
from .responses import Response, error_response, result

_protocol: Any = protocol  # untyped
WANTED = 2.0  # seconds after which a pass checks whether it is still wanted


class UnreachableError(Exception):
    """Another part could not be reached."""

    def __init__(self, part: int) -> None:
        super().__init__(part)
        self.part = part


class Letter(NamedTuple):
    """A parcel for a part, and the keys of the adjoints that its answer brings."""

    part: int
    epoch: int
    parcel: Parcel
    awaited: list[Any]


class Reply(NamedTuple):
    """The answer to a letter: a parcel of adjoints."""

    parcel: Parcel


class Machine:
    """The parts that live on one machine. Errors are returned, not raised; see `responses`."""

    def __init__(self) -> None:
        self.parts: dict[int, Part] = {}
        self._mail: dict[int, Mail] = {}
        self._passes: dict[int, asyncio.Task[PassResult]] = {}

    def install(self, part: int, shipped: bytes) -> Response:
        """Install a part."""
        return _call_for_response(self._install, part, shipped)

    def _install(self, part: int, shipped: bytes) -> None:
        self.parts[part] = Part(part, *pickle.loads(shipped))

    def drop(self, part: int) -> Response:
        """Drop a part."""
        self.parts.pop(part, None)
        return result(None)

    def call(self, part: int, epoch: int, method: str, *args: object) -> Response:
        """Call a method of a part; what earlier epochs left is forgotten."""
        return _call_for_response(self._call, part, epoch, method, args)

    def _call(self, part: int, epoch: int, method: str, args: tuple[Any, ...]) -> Any:
        installed_part = self.parts[part]
        installed_part.begin(epoch)
        return getattr(installed_part, method)(*args)

    # ---------------------------------------------------------------------------------------- passes

    async def pass_through(self, part: int, order: Order) -> Response:
        """Run a pass through a part to its end. It is cancelled by a newer pass, or if the actor is released."""
        task: Any = None
        try:
            installed_part = self.parts[part]
            installed_part.begin(order.epoch)
            if part in self._passes:
                self._passes[part].cancel()
            current_pass = Pass(installed_part, order, self._mail_of(part, order.epoch), self._compute, self._sender(order))
            task = self._passes[part] = asyncio.ensure_future(current_pass.run())
            while not (await asyncio.wait({task}, timeout=WANTED))[0]:
                if not self._is_wanted():
                    task.cancel()
            if task.cancelled():
                raise StaleError
            return result(task.result())
        except UnreachableError as lost:
            return Response(("lost", lost.part))
        except Exception as error:
            return error_response(error)
        finally:
            if task is not None:
                task.cancel()

    def _mail_of(self, part: int, epoch: int) -> Mail:
        """The mail of a part in an epoch; that of earlier ones is dropped."""
        mail = self._mail.get(part)
        if mail is None or mail.epoch < epoch:
            if mail is not None:
                mail.close()
            mail = self._mail[part] = Mail(epoch)
        if mail.epoch > epoch:
            raise StaleError
        return mail

    def _sender(self, order: Order) -> Send:
        here = {part for part, peer in order.peers.items() if part in self.parts and self._is_here(peer)}

        async def send(part: int, parcel: Parcel, awaited: list[Any]) -> Parcel:
            letter = Letter(part, order.epoch, parcel, awaited)
            return await (self._delivered(letter) if part in here else self._send(*order.peers[part], letter))

        return send

    async def _delivered(self, letter: Letter) -> Parcel:
        """Leave values for a part, and wait for their adjoints."""
        mail = self._mail_of(letter.part, letter.epoch)
        mail.put(letter.parcel)
        return {key: await mail.take(key) for key in letter.awaited}

    # ------------------------------------------------- differences if a machine is a process of its own

    def _is_here(self, peer: tuple[str, str]) -> bool:
        return True

    def _is_wanted(self) -> bool:
        return True

    async def _compute(self, function: Callable[..., Any], *args: object) -> Any:
        """The result of a function that may take long."""
        return function(*args)

    async def _send(self, address: str, name: str, letter: Letter) -> Parcel:
        raise UnreachableError(letter.part)


class Resident(Machine):
    """A machine that is an actor of Dask's. Parts compute in its one thread, in the order in which they become ready."""

    def _is_here(self, peer: tuple[str, str]) -> bool:
        return get_worker().state.actors.get(peer[1]) is self

    def _is_wanted(self) -> bool:
        return any(actor is self for actor in get_worker().state.actors.values())

    async def _compute(self, function: Callable[..., Any], *args: object) -> Any:
        run = contextvars.copy_context().run
        return await asyncio.get_running_loop().run_in_executor(get_worker().executors["actor"], run, function, *args)

    async def _send(self, address: str, name: str, letter: Letter) -> Parcel:
        request = {"function": "deliver", "actor": name, "args": [_protocol.to_serialize(letter)], "kwargs": {}}
        try:
            response = await get_worker().rpc(address).actor_execute(**request)
        except (OSError, KeyError) as error:  # it is lost, or another process has its address by now
            raise UnreachableError(letter.part) from error
        if response["status"] != "OK":
            raise response["exception"]
        parcel: Parcel = response["result"].parcel
        return parcel

    async def deliver(self, letter: Letter) -> Reply:
        """Take in values from another machine; answer with their adjoints, or with none if the pass was given up."""
        task = asyncio.ensure_future(self._delivered(letter))
        try:
            while not (await asyncio.wait({task}, timeout=WANTED))[0]:
                if not self._is_wanted():
                    task.cancel()
            return Reply(task.result())
        except (StaleError, asyncio.CancelledError):
            if not task.done():  # this call itself was cancelled
                raise
            return Reply({})  # the pass was given up
        finally:
            task.cancel()


def _call_for_response(function: Callable[..., Any], *args: object) -> Response:
    try:
        return result(function(*args))
    except Exception as error:
        return error_response(error)
