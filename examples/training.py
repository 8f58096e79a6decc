"""Training that can be interrupted at any moment, and resumes from its checkpoint with the same bits."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from digits import Array, Batches, shift
from networks import MODELS
from tqdm import tqdm

import compgraph as cg
from autodiff import value_and_grad
from autodiff.optimizers import SGD, AdaGrad, Adam, AdamW, Cosine, Optimizer, RMSProp, StepController
from autodiff.reverse import gradient

OPTIMIZERS: dict[str, Any] = {made.__name__.lower(): made for made in (SGD, AdaGrad, RMSProp, Adam, AdamW, StepController)}


@dataclass(frozen=True)
class Settings:
    """The settings of a training. Every name is that of an option of the command line."""

    data: str
    model: str
    optimizer: str
    schedule: str
    rate: float
    iterations: int
    batch_size: int
    shift: float
    seed: int
    jit: bool = False


class Training:
    """The state of a training, which a checkpoint contains."""

    def __init__(self, settings: Settings, images: Array, labels: Array) -> None:
        self.settings, self.images, self.labels = settings, images, labels
        self.rng = np.random.default_rng(settings.seed)
        self.model = MODELS[settings.model]
        self.parameters = self.model.parameters(images.shape[1], self.rng)
        self.optimizer = make_optimizer(settings, self.parameters)
        self.batches = Batches(len(images), settings.batch_size, self.rng)
        self.losses: list[float] = []
        self.compiled = self._compiled() if settings.jit else None
        checksum = zlib.crc32(labels.tobytes(), zlib.crc32(images.tobytes()))
        self.made_with = asdict(settings) | {"checksum_of_the_data": checksum}

    def run(self, checkpoint: Path | None = None, every: int = 100) -> None:
        """Take the remaining steps, and write a checkpoint after each `every` steps and after the last."""
        last, done = self.settings.iterations, len(self.losses)
        bar = tqdm(range(done + 1, last + 1), total=last, initial=done, desc="Training")
        for iteration in bar:
            self.step()
            if iteration % 100 == 0 or iteration == last:
                bar.set_postfix(loss=f"{np.mean(self.losses[-1000:]):.4f}", refresh=False)
            if checkpoint and (iteration % every == 0 or iteration == last):
                write_checkpoint(checkpoint, self.state())

    def step(self) -> None:
        """Update the parameters by one batch."""
        rows = next(self.batches)
        images: Array = self.images[rows].astype(self.model.dtype)
        if self.settings.shift:
            images = shift(images, self.settings.shift, self.rng)
        if self.compiled is None:
            loss = self.loss(self.parameters, images, self.labels[rows])
            gradients: Any = gradient(loss)
        else:
            loss, gradients = self.compiled(self._arrays(), images, self.labels[rows])
        with_loss = (loss,) if isinstance(self.optimizer, StepController) else ()
        self.optimizer.step(gradients, *with_loss)
        self.losses.append(float(loss))

    def loss(self, parameters: Any, images: Array, labels: Array) -> Any:
        """The loss of one batch."""
        return cg.softmax_cross_entropy(self.model.logits(images, parameters), labels)

    def _compiled(self) -> Any:
        """The loss and its gradients by the parameters as one compiled function, made before the first step.

        Otherwise the first steps would run as NumPy, whose last bits differ, until the background thread has compiled.
        """
        rows = slice(self.settings.batch_size)
        compiled = cg.jit(value_and_grad(self.loss))
        return compiled.compile(self._arrays(), self.images[rows].astype(self.model.dtype), self.labels[rows])

    def _arrays(self) -> dict[str, Array]:
        """The current parameters."""
        return {name: parameter.value for name, parameter in self.parameters.items()}

    def state(self) -> dict[str, Any]:
        """Return everything that the following steps depend on."""
        return {
            "made_with": json.dumps(self.made_with),
            "rng": json.dumps(self.rng.bit_generator.state),
            "order": self.batches.order,
            "position": self.batches.position,
            "losses": np.array(self.losses),
            **{f"optimizer.{name}": value for name, value in self.optimizer.state_dict().items()},
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state; raise a ValueError for one with other settings or images."""
        made_with = json.loads(str(state["made_with"]))
        for name, value in self.made_with.items():
            if made_with.get(name) != value:
                raise ValueError(f"it was made with {name.replace('_', ' ')} {made_with.get(name)}, not {value}")
        self.optimizer.load_state_dict(
            {name.removeprefix("optimizer."): value for name, value in state.items() if name.startswith("optimizer.")}
        )
        self.rng.bit_generator.state = json.loads(str(state["rng"]))
        self.batches.order, self.batches.position = state["order"], int(state["position"])
        self.losses = state["losses"].tolist()


def make_optimizer(settings: Settings, parameters: Any) -> Optimizer:
    """The optimizer of a name; with the schedule "cosine" its learning rate decreases to zero along half a wave."""
    rate = settings.rate if settings.schedule == "constant" else Cosine(settings.rate, steps=max(settings.iterations, 1))
    optimizer: Optimizer = OPTIMIZERS[settings.optimizer](parameters, learning_rate=rate)
    return optimizer


def part_of(file: Path) -> Path:
    """The temporary file of a checkpoint while it is written."""
    return file.with_name(file.name + ".part")


def write_checkpoint(file: Path, state: dict[str, Any]) -> None:
    """Write a state into a file atomically: after an interruption it contains the previous state or the new one."""
    part = part_of(file)
    with part.open("wb") as stream:
        np.savez(stream, **state)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(file)


def read_checkpoint(file: Path) -> dict[str, Any]:
    """Return the state in a file; raise a ValueError if it is not a checkpoint."""
    try:
        with file.open("rb") as stream, np.load(stream) as stored:
            state = dict(stored)
    except (zipfile.BadZipFile, EOFError, TypeError, ValueError) as error:
        raise ValueError(f"it is not a checkpoint, or damaged: {error}") from error
    if "made_with" not in state:
        raise ValueError("it is not a checkpoint of this program")
    return state
