# SPDX-License-Identifier: Apache-2.0
"""Reads the shards with PyTorch.

    from chex_tools.torch import Normalize, Sampler, Shards, batches
    train, normalize = Shards("shards", "train"), Normalize().to("cuda")
    sampler = Sampler(train, 64)
    for epoch in range(sampler.epoch, 10):
        for image, label, about in batches(train, sampler=sampler):
            loss = criterion(network(normalize(image.to("cuda", non_blocking=True))), label.to("cuda"))
"""
import collections
import concurrent.futures
import hashlib
import operator
import random
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Callable, Optional, Union

import numpy as np
import torch
from torch.utils import data

from . import order as _order
from ._dataset import Dataset
from ._maps import Path
from .errors import IncompatibleError, UsageError

Batch = tuple[torch.Tensor, torch.Tensor, dict[str, Any]]
_worker_info: Callable[[], Any] = data.get_worker_info
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Normalize(torch.nn.Module):
    """(..., 1, H, W) or (..., 3, H, W) bytes to (..., 3, H, W) floats, as torchvision's networks want them.

    On a GPU it takes the place of the conversion in the reader, so the CPU only copies bytes.  It has no state in
    checkpoints."""

    scale: torch.Tensor
    shift: torch.Tensor

    def __init__(self, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION) -> None:
        super().__init__()
        means, deviations = (torch.tensor(list(v)).view(-1, 1, 1) for v in (mean, deviation))
        self.register_buffer("scale", 1 / (255 * deviations), persistent=False)
        self.register_buffer("shift", means / deviations, persistent=False)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = image * self.scale - self.shift  # both broadcast to 3 channels
        return scaled


class Shards(data.Dataset[Any]):
    """A split as a map-style Dataset, without padding records: image, label, a dict.

    image      (1, H, W) uint8; with channels=3 (3, H, W); with normalize=True (3, H, W) floats of Normalize()
    label      (findings,) float; NaN for unknown
    the dict   name, patient, sex and view as texts, age as a number, NaN for unknown

    An index gives one image, a list of indices a batch of them.  transform gets the gray image (1, H, W) and returns
    one, as torchvision's do; it comes before channels and normalize.  where selects as in Dataset.  Any start method
    of worker processes works."""

    def __init__(self, folder: Path, split: Optional[str] = None,
                 transform: Optional[Callable[[torch.Tensor], torch.Tensor]] = None, *,
                 where: Union[str, Sequence[str], None] = None, channels: int = 1, normalize: bool = False) -> None:
        if channels not in (1, 3):
            raise UsageError(f"channels are 1 or 3, not {channels}")
        self.records = Dataset(folder, split, where)
        self.transform, self.channels = transform, channels
        self._maps: dict[int, torch.Tensor] = {}
        self.normalize = Normalize() if normalize else None
        labels = torch.from_numpy(self.records.labels.astype(np.float32))
        self.label = torch.where(labels.eq(255), torch.full_like(labels, float("nan")), labels)
        self.age = torch.from_numpy(self.records.ages.copy())
        self.text = {"name": self.records.names, "patient": self.records.patients, "sex": self.records.sexes,
                     "view": self.records.views}

    @property
    def findings(self) -> tuple[str, ...]:
        """The names of the findings, in the order of a label."""
        return self.records.findings

    def __len__(self) -> int:
        return len(self.records)

    def __getstate__(self) -> dict[str, Any]:
        """A process that was not forked maps the shards itself."""
        return {**self.__dict__, "_maps": {}}

    def _map(self, shard: int) -> torch.Tensor:
        found = self._maps.get(shard)
        if found is None:
            found = self._maps[shard] = torch.from_numpy(self.records.mapped_images(shard))
        return found

    def _images(self, indices: list[int], shared: bool) -> torch.Tensor:
        """A copy of the gray images (n, 1, H, W), in shared memory or not.

        One call of PyTorch copies all of them, so that other threads can run meanwhile."""
        if not indices:
            return torch.empty((0, 1, *self.records.shape), dtype=torch.uint8)
        views = [self._map(shard)[row] for shard, row in self.records.places[indices].tolist()]
        out = _shared((len(indices), *self.records.shape)) if shared else None
        image: torch.Tensor = torch.stack(views, out=out).unsqueeze(1)
        return image

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (np.ndarray, torch.Tensor)) and index.ndim == 1:
            index = index.tolist()
        if isinstance(index, list):
            # Batches of a worker process are in shared memory.  It needs a descriptor, so single images are not.
            return self._batch(index, _worker_info() is not None)
        try:
            number = operator.index(index)
        except (TypeError, ValueError):
            raise UsageError(f"an index is a number or a list of numbers, not {index!r}") from None
        images, labels, columns = self._batch([number], False)
        return images[0], labels[0], {name: values[0] for name, values in columns.items()}

    def _batch(self, k: list[int], shared: bool) -> Batch:
        image = self._images(k, shared)  # IndexError: one of them is outside
        if self.transform and k:
            image = torch.stack([self.transform(x) for x in image.unbind()])
        if self.normalize:
            image = self.normalize(image)
        elif self.channels == 3 and image.shape[1] == 1:
            image = image.expand(-1, 3, -1, -1)
        about: dict[str, Any] = {name: column[k].tolist() for name, column in self.text.items()}
        about["age"] = self.age[k]
        return image, self.label[k], about


def _shared(shape: tuple[int, ...]) -> torch.Tensor:
    """Shared memory, into which a worker process writes its batch without a second copy."""
    example: Any = torch.empty(0, dtype=torch.uint8)
    storage = example._typed_storage() if hasattr(example, "_typed_storage") else example.storage()
    shared: torch.Tensor = example.new(storage._new_shared(int(np.prod(shape)))).resize_(*shape)
    return shared


def inverse_frequency(shards: Shards) -> torch.Tensor:
    """A weight for each image: 1 / (images with the rarest finding that it has).

    No Finding counts as a finding: all labels are 0.  An image with neither, whose labels are 0 or unknown, has the
    smallest weight, 1 / (all images).  For Sampler(weights=...): images with rare findings are drawn more often."""
    positive = shards.label.eq(1)
    positive = torch.cat([positive, shards.label.eq(0).all(dim=1, keepdim=True)], dim=1)
    counts = positive.sum(dim=0).double()
    each = torch.where(positive, counts, torch.full_like(counts, len(shards)))
    weights: torch.Tensor = each.min(dim=1).values.reciprocal()
    return weights


def _ranks(rank: Optional[int], world_size: Optional[int]) -> tuple[int, int]:
    """Those of the arguments, of torch.distributed if it is initialised, or 0 of 1."""
    if (rank is None) != (world_size is None):
        raise UsageError("rank and world_size belong together")
    if rank is None or world_size is None:
        distributed = torch.distributed
        if not distributed.is_available() or not distributed.is_initialized():
            return 0, 1
        return distributed.get_rank(), distributed.get_world_size()
    world_size = _order.whole(world_size, "world_size", 1, 1 << 31)
    return _order.whole(rank, "rank", 0, world_size - 1), world_size


class Sampler(data.Sampler[list[int]]):
    """Batches of indices, in chex-train's order by seed and epoch; it can stop and go on in the middle of an epoch.

    batch_size     images in a batch of one rank
    seed, window   those of chex-train (--seed, --shuffle N).  So a step has the images that it has in chex-train with
                   the same global batch.  shuffle=False: the order of the shards
    weights        a number for each image: draw as many images as there are, with replacement, an image as often as
                   its weight says.  Then the order is not chex-train's
    rank, world_size   default: those of torch.distributed if it is initialised
    drop_last      leave out the last step if it has fewer images.  If not, the ranks share its images; if there are
                   fewer than ranks, some ranks have one batch less

    All ranks together have each image once in an epoch.  Each iteration is an epoch: the first one is `epoch`, and the
    next one follows.  set_epoch() chooses another one.  len() is the number of batches of this iteration, or of the
    next one before the first, so after load_state_dict() it is that of the rest of the epoch."""

    def __init__(self, shards: Shards, batch_size: int, *, seed: int = 1, window: int = 0, shuffle: bool = True,
                 weights: Union[torch.Tensor, Sequence[float], None] = None, rank: Optional[int] = None,
                 world_size: Optional[int] = None, drop_last: bool = False) -> None:
        if not isinstance(shards, Shards):
            raise UsageError(f"a Sampler is for Shards of chex_tools.torch, not for {type(shards).__name__}")
        self.shards, self.drop_last, self.shuffle = shards, drop_last, bool(shuffle)
        self.batch_size = _order.whole(batch_size, "batch_size", 1, (1 << 31) - 1)
        self.seed, self.window = _order.whole_seed(seed), _order.whole_window(window)
        self.rank, self.world_size = _ranks(rank, world_size)
        self.epoch = self.position = self._first = 0
        self._begun = False
        self._sums: Optional[Any] = None
        drawn = None
        if weights is not None:
            plain = weights.detach().cpu() if isinstance(weights, torch.Tensor) else weights
            given = np.asarray(plain, dtype=np.float64)
            if given.shape != (len(shards),) or not np.isfinite(given).all() or (given < 0).any() or not given.any():
                raise UsageError(f"weights are {len(shards)} finite numbers of 0 or more, and not all 0")
            self._sums = np.cumsum(given / given.max())  # so the sum is finite
            drawn = hashlib.sha256(given.astype("<f8").tobytes()).hexdigest()
        chosen = _order.order_hash(shards.records, np.arange(len(shards)))
        # What must be equal for a state to fit.
        self._identity = {"dataset": shards.records.id, "images": chosen, "seed": self.seed, "window": self.window,
                          "shuffle": self.shuffle, "weights": drawn}

    def order(self, epoch: int) -> Any:
        """The images of an epoch, of all ranks."""
        epoch = _order.whole_epoch(epoch)
        if self._sums is not None:
            draws = _order.random_uniform(self.seed, _order.WEIGHTED, epoch, len(self.shards)) * self._sums[-1]
            return np.minimum(np.searchsorted(self._sums, draws, side="right"), len(self.shards) - 1)
        if not self.shuffle:
            return np.arange(len(self.shards))
        return _order.epoch_order(self.shards.records, self.seed, epoch, self.window)

    def _steps(self, left: int) -> int:
        """How many batches this rank has of the images that are left."""
        full, rest = divmod(left, self.batch_size * self.world_size)
        return full + (not self.drop_last and rest > self.rank)

    def __len__(self) -> int:
        return self._steps(len(self.shards) - self._first)

    def _begin(self) -> tuple[int, int]:
        """Begin an epoch; returns its number and how many of its images are done."""
        if self._begun:
            self.epoch, self.position = self.epoch + 1, 0
        self._begun, self._first = True, self.position
        return self.epoch, self.position

    def _batches(self, epoch: int, done: int) -> Iterator[tuple[list[int], int]]:
        """Each batch of this rank, and how many images of all ranks are done after it.

        The last batch is empty if its step has images for other ranks only."""
        order, step = self.order(epoch), self.batch_size * self.world_size
        for begin in range(done, len(order), step):
            images = order[begin:begin + step]
            if len(images) == step:
                own = images[self.rank * self.batch_size:(self.rank + 1) * self.batch_size]
            elif self.drop_last:
                return
            else:
                own = np.array_split(images, self.world_size)[self.rank]
            yield own.tolist(), begin + len(images)

    def __iter__(self) -> Iterator[list[int]]:
        for batch, done in self._batches(*self._begin()):
            self.position = done
            if batch:
                yield batch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is this epoch, from its first image; from that of load_state_dict() if it had this epoch.

        So a loop can call it before each iteration, also after load_state_dict()."""
        epoch = _order.whole_epoch(epoch)
        if self._begun or epoch != self.epoch:
            self.epoch, self.position, self._first, self._begun = epoch, 0, 0, False

    def state_dict(self, steps: Optional[int] = None) -> dict[str, Any]:
        """Where the run is: after the last batch that came from batches(), or directly from this sampler.

        A DataLoader with workers takes batches before the loop gets them.  So give steps with a DataLoader: how many
        batches of this epoch the loop has had since its beginning, or since load_state_dict().  The state is the same
        on all ranks, and can be loaded with another number of ranks or another batch_size."""
        position = self.position
        if steps is not None:
            each, left = self.batch_size * self.world_size, len(self.shards) - self._first
            position = self._first + min(_order.whole(steps, "steps", 0, -(-left // each)) * each, left)
        return {"epoch": self.epoch, "position": position, **self._identity}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was made: the next iteration has the images of its epoch that are left.

        IncompatibleError: the state is that of another data set, other images, or another seed, window or weights."""
        wrong = [key for key, value in self._identity.items() if state.get(key) != value]
        wrong += [key for key, most in (("epoch", (1 << 32) - 1), ("position", len(self.shards)))
                  if not isinstance(state.get(key), int) or not 0 <= state[key] <= most]
        if wrong:
            raise IncompatibleError(f"not the state of this sampler: see {', '.join(wrong)}")
        self.epoch, self._begun = state["epoch"], False
        self.position = self._first = state["position"]


def batches(shards: Shards, size: Optional[int] = None, shuffle: bool = True, threads: int = 2, ahead: int = 4, *,
            sampler: Optional[Sampler] = None) -> Generator[Batch, None, None]:
    """The batches of one epoch, read ahead by threads: no processes, no shared memory.

    size: images in a batch, in a random order or in that of the shards.  Or a sampler decides both; its state_dict()
    is that after the batch that the loop has.  At most `ahead` batches are in memory in addition to that of the loop.
    With CUDA their images are in pinned memory."""
    if (size is None) == (sampler is None):
        raise UsageError("give either size or sampler")
    if sampler is not None and sampler.shards is not shards:
        raise UsageError("the sampler is that of other shards")
    if size is not None:
        size = _order.whole(size, "size", 1, (1 << 31) - 1)
    threads, ahead = (_order.whole(n, name, 0, 1 << 16) for n, name in ((threads, "threads"), (ahead, "ahead")))
    return _read_ahead(shards, size or 1, shuffle, max(threads, 1), ahead, sampler)


def _read_ahead(shards: Shards, size: int, shuffle: bool, threads: int, ahead: int,
                sampler: Optional[Sampler]) -> Generator[Batch, None, None]:
    """batches(), after its arguments were checked."""
    if sampler is not None:
        plan = sampler._batches(*sampler._begin())  # the sampler notes what the loop has, not what is read ahead
    elif len(shards):
        each = data.RandomSampler(shards) if shuffle else data.SequentialSampler(shards)
        plan = ((k, 0) for k in data.BatchSampler(each, size, drop_last=False))
    else:
        plan = iter(())  # RandomSampler refuses this
    pin = torch.cuda.is_available()

    def read(k: list[int]) -> Batch:
        image, label, about = shards[k]
        return image.pin_memory() if pin else image, label, about

    coming: collections.deque[tuple[concurrent.futures.Future[Batch], int]] = collections.deque()
    pool = concurrent.futures.ThreadPoolExecutor(threads)
    end = None
    try:
        for k, done in plan:
            if k:
                coming.append((pool.submit(read, k), done))
            else:
                end = done  # of a last step without images of this rank
            if len(coming) > ahead:
                yield _take(coming, sampler)
        while coming:
            yield _take(coming, sampler)
        if sampler is not None and end is not None:
            sampler.position = end
    finally:  # also of a loop that ends early
        pool.shutdown(cancel_futures=True)


def _take(coming: "collections.deque[tuple[concurrent.futures.Future[Batch], int]]",
          sampler: Optional[Sampler]) -> Batch:
    """The next batch; the sampler notes that it is done."""
    future, done = coming.popleft()
    batch = future.result()
    if sampler is not None:
        sampler.position = done
    return batch


def worker_init(worker_id: int) -> None:
    """For DataLoader(worker_init_fn=worker_init): seeds random and NumPy in a worker process as PyTorch is seeded.

    Old versions of PyTorch leave NumPy with one seed in all workers, so that their random transforms are equal."""
    seed = torch.initial_seed() % (1 << 32)
    random.seed(seed)
    np.random.seed(seed)
