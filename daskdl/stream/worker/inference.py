"""Inference: a batch of records becomes answers and dead letters, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from daskdl.stream.queues.records import Output, Record, dead_letter
from daskdl.stream.worker.messages import Decode, Routes
from daskdl.stream.worker.model_file import ServedModel

#: Characters of a reason that a dead letter bears.
REASON = 500


@dataclass(frozen=True)
class Inference:
    """The steps on a batch of records: read, predict, route.

    With ``echo`` an answer contains its message as ``message``, if that is a text in UTF-8.
    """

    decode: Decode
    routes: Routes
    echo: bool = False

    def __call__(self, model: ServedModel, records: Sequence[Record]) -> tuple[list[Output], int]:
        """Return an output for each record, and the number of dead letters."""
        values, reasons = self._decoded(records)
        good = [i for i in range(len(records)) if i not in reasons]
        answers: dict[int, tuple[int, float]] = {}
        self._predict(model, values, good, answers, reasons)
        outputs = []
        for i, record in enumerate(records):
            if i in answers:
                outputs.append(self._answer(model, record, *answers[i]))
            else:
                outputs.append(
                    dead_letter(
                        record, self.routes.dead_letters, reasons[i][:REASON], model=model.name,
                        sha256=model.sha256,
                    )
                )  # fmt: skip
        return outputs, len(reasons)

    def _decoded(self, records: Sequence[Record]) -> tuple[list[Any], dict[int, str]]:
        values: list[Any] = []
        reasons: dict[int, str] = {}
        for i, record in enumerate(records):
            value = None
            try:
                if record.damage:
                    reasons[i] = f"read: {record.damage}"
                elif record.value is None:
                    reasons[i] = "decode: expected bytes, found a message without a value"
                else:
                    value = self.decode(record.value)
            except Exception as error:  # of a user's function, or of bytes that are no text
                reasons[i] = f"decode: {type(error).__name__}: {error}"
            values.append(value)
        return values, reasons

    def _predict(
        self,
        model: ServedModel,
        values: Sequence[Any],
        which: Sequence[int],
        answers: dict[int, tuple[int, float]],
        reasons: dict[int, str],
    ) -> None:
        """Predict all at once; if that fails, by halves, to find the bad ones."""
        if not which:
            return
        try:
            best, probability = model([values[i] for i in which])
            if best.shape != (len(which),):  # such as of a list in a list
                raise ValueError(
                    f"expected one class for each message, found results of shape {best.shape[1:]}"
                )
        except Exception as error:
            if len(which) == 1:
                reasons[which[0]] = f"predict: {type(error).__name__}: {error}"
                return
            middle = len(which) // 2
            self._predict(model, values, which[:middle], answers, reasons)
            self._predict(model, values, which[middle:], answers, reasons)
            return
        pairs = zip(best.tolist(), probability.tolist(), strict=True)
        answers.update(zip(which, pairs, strict=True))

    def _answer(self, model: ServedModel, record: Record, best: int, probability: float) -> Output:
        value = model.answer(best, probability)
        if self.echo and record.value is not None:
            import json

            try:
                message = json.dumps(record.value.decode())
            except UnicodeDecodeError:
                message = "null"
            value = value[:-1] + f', "message": {message}}}'.encode()
        topic = self.routes.of(model.label(best), probability)
        return Output(record, topic, value)
