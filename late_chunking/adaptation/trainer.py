"""The training itself: steps, evaluations on the held-back documents, an end."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list

from late_chunking.adaptation.adapters import Trainable
from late_chunking.adaptation.checkpoint import Checkpoint
from late_chunking.adaptation.loss import contrastive
from late_chunking.adaptation.plan import Training, fingerprint
from late_chunking.adaptation.steps import Step, Steps
from late_chunking.adaptation.training_set import TrainingSet, check_documents, parted
from late_chunking.adaptation.vectors import differentiable_vectors
from late_chunking.characters import BoolArray, IntArray
from late_chunking.embedder import LateChunker
from late_chunking.encoding.device import launched
from late_chunking.encoding.model import Network
from late_chunking.encoding.selfcheck import choose_encoder
from late_chunking.errors import DeviceError, InvalidParameter
from late_chunking.evaluation.arms import make_arms, make_cuttings
from late_chunking.evaluation.comparison import compare
from late_chunking.evaluation.dataset import Dataset, Query
from late_chunking.evaluation.relevance import is_relevant
from late_chunking.evaluation.report import MEASURE
from late_chunking.evaluation.vectors import Store
from late_chunking.evaluation.vectors import fingerprint as model_fingerprint
from late_chunking.planning import Planner
from late_chunking.plans import DocumentPlan
from late_chunking.request import DEFAULT_STRATEGY, Request

_SAVED_EVERY: Final = 60.0  # seconds
_LARGEST_GRADIENT: Final = 1.0
# Of a training on a GPU: not by its free memory, so that a run which goes on packs as before.
_DEVICE_BATCH_TOKENS: Final = 8_192


@dataclass(frozen=True, slots=True)
class Adapted:
    """What came of a training.

    Attributes:
        trainable: the network, with the best of what was learnt.
        planner: of the model.
        end: where the run ended.
    """

    trainable: Trainable
    planner: Planner
    end: Checkpoint


class Trainer:
    """Trains one model on one set of documents."""

    def __init__(self, planner: Planner, dataset: Dataset, held: Dataset, training: Training) -> None:
        """Load the model's weights, and prepare the documents.

        Args:
            planner: of the model; its numbers are computed as `training` says, not as its settings do.
            dataset: what to train on.
            held: what to evaluate by.
            training: how.

        Raises:
            InvalidInput: if the documents or settings are not fit for it.
        """
        if training.documents_per_step < launched().num_processes:
            raise InvalidParameter(
                f"documents_per_step {training.documents_per_step} leaves some of the {launched().num_processes} "
                "processes without a document: give at least as many"
            )
        check_documents(held, "to evaluate by")
        self.training = training
        self.held = held
        self.planner, settings = planner, planner.settings
        self.training_set = TrainingSet.of(parted(dataset, self.planner, training.document_tokens))
        self.training_set.check(self.planner)
        network = Network.load(
            self.planner.folder,
            device=settings.device,
            dtype="float32",
            trust_remote_code=settings.trust_remote_code,
        )
        on_cpu = network.device.type == "cpu"
        if training.precision == "bf16" and on_cpu:
            raise InvalidParameter("precision bf16 is for GPUs; a CPU computes in fp32")
        self.lower = training.precision == "bf16" or (training.precision == "auto" and network.device.type == "cuda")
        self.accelerator = Accelerator(cpu=not torch.accelerator.is_available())
        window = self.planner.folder.window
        choice = choose_encoder(network, window, fixed=False)
        self.trainable = Trainable(network, choice.encoder, window, training.rank, training.seed)
        self.chunker = LateChunker.around(self.planner, network, choice)
        if not on_cpu and settings.max_batch_tokens is None:
            self.chunker.batch_tokens = _DEVICE_BATCH_TOKENS
        self.steps = Steps(len(self.training_set.documents), training, window)
        self.optimizer = torch.optim.AdamW(self.trainable.parameters.values(), lr=training.highest_rate)
        model = {name: value for name, value in model_fingerprint(self.chunker).items() if name != "device"}
        evaluated = TrainingSet.of(held).fingerprint
        self.run = fingerprint(training.record(), model, self.training_set.fingerprint, evaluated)

    def train(
        self,
        folder: Path,
        *,
        stepped: Callable[[int, int, float], None] = lambda number, total, loss: None,
        evaluated: Callable[[int, float], None] = lambda step, measure: None,
    ) -> Adapted:
        """Train to the end, going on where an earlier run of the same settings stopped.

        Args:
            folder: for checkpoints; must exist.
            stepped: told the number of steps done, of all, and the last one's loss.
            evaluated: told the number of steps done and the measure on held-back documents.

        Raises:
            InvalidParameter: if the folder holds a run of other settings.
            DeviceError: if the loss is not finite.
        """
        state: Checkpoint | None = self._from_main(lambda: Checkpoint.load(folder, self.run))
        if state is None:
            state = Checkpoint(self.run)
            self._evaluate(state, evaluated)
        else:
            self.trainable.load(state.parameters)
            self.optimizer.load_state_dict(state.optimizer)
        begun, saved = time.monotonic() - state.seconds, time.monotonic()
        while state.step < self.steps.total and not self._has_stalled(state):
            loss = self._take(self.steps.step(state.step))
            state.step += 1
            state.losses.append(loss)
            stepped(state.step, self.steps.total, loss)
            evaluating = state.step % self.training.evaluate_every == 0 or state.step == self.steps.total
            if evaluating:
                self._evaluate(state, evaluated)
            state.seconds = time.monotonic() - begun
            if evaluating or time.monotonic() - saved > _SAVED_EVERY:
                self._save(state, folder)
                saved = time.monotonic()
        state.parameters = self.trainable.state()
        self.trainable.load(state.best)
        return Adapted(self.trainable, self.planner, state)

    def gradients(self, step: Step) -> float:
        """Leave the gradients of one step in the parameters, on each process the same, and give the step's loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._loss(step)
        value = float(loss.detach())
        if not np.isfinite(value):
            raise DeviceError(f"the loss of step {step.number} is not finite: {value}; try a lower learning rate")
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        if self.accelerator.num_processes > 1:
            self._add_up(list(self.trainable.parameters.values()))
        return value

    def _from_main(self, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it makes
        """Give to all processes what the main one makes, or raise on all what it raises there."""
        if self.accelerator.num_processes == 1:
            return make()
        said: list[Any] = [None]
        if self.accelerator.is_main_process:
            try:
                said = [make()]
            except Exception as error:  # the others would wait for it
                said = [error]
        (made,) = broadcast_object_list(said)
        if isinstance(made, Exception):
            raise made
        return made

    def _take(self, step: Step) -> float:
        """Take one step, and give its loss."""
        loss = self.gradients(step)
        torch.nn.utils.clip_grad_norm_(self.trainable.parameters.values(), _LARGEST_GRADIENT)
        for group in self.optimizer.param_groups:
            group["lr"] = self.training.highest_rate * self.steps.rate(step.number)
        self.optimizer.step()
        return loss

    def _add_up(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Add up all processes' gradients: each has those of the vectors that it made."""
        reached = torch.tensor([float(each.grad is not None) for each in parameters], device=parameters[0].device)
        everywhere = self.accelerator.reduce(reached, "sum").tolist()
        for parameter, count in zip(parameters, everywhere, strict=True):
            if count:  # others have no gradient on any process, and are not to be changed
                own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad = self.accelerator.reduce(own, "sum")

    def _loss(self, step: Step) -> torch.Tensor:
        """Give the loss of all queries of a step, which each process computes; gradients pass to its own vectors."""
        request = Request((step.strategy,), mode=step.mode)
        plans, asked = [], []
        for place in step.documents:
            plans.append(_decided(self.planner.plan(self.training_set.documents[place], request, place)))
            queries = self.training_set.queries[place]
            drawn = self.steps.queries(step.number, place, len(queries))
            asked.append([queries[one] for one in drawn.tolist()])
        shares = np.array_split(np.arange(len(plans)), self.accelerator.num_processes)
        made = self._made(plans, asked, shares[self.accelerator.process_index])
        chunks, questions = self._everyones(made, plans, asked, shares)
        relevant = torch.from_numpy(_relevant(plans, asked)).to(chunks.device)
        return contrastive(questions, chunks, relevant, self.training.scale)

    def _made(
        self, plans: Sequence[DocumentPlan], asked: Sequence[Sequence[Query]], share: IntArray
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Make the vectors of some documents' chunks and of their queries, in one pass: [C, D] and [Q, D]."""
        documents = [plans[place] for place in share.tolist()]
        texts = [query.text for place in share.tolist() for query in asked[place]]
        questions = [_decided(plan) for plan in self.chunker.plan_texts(texts, input_type="query")] if texts else []
        together = [*documents, *questions]
        if not sum(plan.rows for plan in together):
            nothing = torch.zeros(0, self.chunker.head.dimensions, device=self.chunker.network.device)
            return nothing, nothing
        vectors = differentiable_vectors(self.chunker, together, lower=self.lower)
        count = sum(plan.rows for plan in documents)
        return vectors[:count], vectors[count:]

    def _everyones(
        self,
        made: tuple[torch.Tensor, torch.Tensor],
        plans: Sequence[DocumentPlan],
        asked: Sequence[Sequence[Query]],
        shares: Sequence[IntArray],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Put one's own vectors among those of the other processes, which are constants here."""
        if len(shares) == 1:
            return made
        counts = (
            [sum(plans[place].rows for place in share.tolist()) for share in shares],
            [sum(len(asked[place]) for place in share.tolist()) for share in shares],
        )
        together = []
        for own, sizes in zip(made, counts, strict=True):
            padded = own.new_zeros(max(*sizes, 1), own.shape[1])
            padded[: len(own)] = own.detach()
            gathered = self.accelerator.gather(padded).view(len(shares), -1, own.shape[1])
            parts = [gathered[process, :size] for process, size in enumerate(sizes)]
            parts[self.accelerator.process_index] = own
            together.append(torch.cat(parts))
        return together[0], together[1]

    def _evaluate(self, state: Checkpoint, evaluated: Callable[[int, float], None]) -> None:
        """Evaluate on the held-back documents, and keep the best."""
        measure: float = self._from_main(lambda: held_measure(self.chunker, self.held))
        state.measures[state.step] = measure
        if state.best_step == state.step:
            state.best = self.trainable.state()
        evaluated(state.step, measure)

    def _has_stalled(self, state: Checkpoint) -> bool:
        """Tell whether the last evaluations found nothing better."""
        later = [step for step in state.measures if step > state.best_step]
        return len(later) >= self.training.patience

    def _save(self, state: Checkpoint, folder: Path) -> None:
        """Write down where the run stands."""
        if self.accelerator.is_main_process:
            state.parameters, state.optimizer = self.trainable.state(), self.optimizer.state_dict()
            state.save(folder)


def held_measure(chunker: LateChunker, held: Dataset) -> float:
    """Give the mean nDCG@10 of late vectors over the chunks of all held-back documents."""
    arms = make_arms("", make_cuttings([DEFAULT_STRATEGY], []), ["late"])
    (result,) = compare(chunker, held, arms, Store(None))
    return float(result.corpus[MEASURE].mean())


def _decided(plan: Any) -> DocumentPlan:  # noqa: ANN401 - a plan
    """Narrow a plan: no strategy of a training waits for vectors."""
    if not isinstance(plan, DocumentPlan):
        raise TypeError(f"a decided plan is needed, got {type(plan).__name__}")
    return plan


def _relevant(plans: Sequence[DocumentPlan], asked: Sequence[Sequence[Query]]) -> BoolArray:
    """Tell which chunks answer which queries, bool [Q, C], both document by document."""
    spans = [np.asarray([chunk.span for chunk in plan.chunks], dtype=np.int64).reshape(-1, 2) for plan in plans]
    rows = [
        np.concatenate(
            [is_relevant(own, query.gold.get(plan.document.id, ())) for own, plan in zip(spans, plans, strict=True)]
        )
        for queries in asked
        for query in queries
    ]
    return np.stack(rows)
