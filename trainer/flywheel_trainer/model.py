"""The base model with LoRA in every linear layer, as a function from rows to log-probabilities.

`AutoModelForCausalLM` loads the body. Its weights stay frozen in one type; the factors are float32 and are cast where
they are used. The model's own head is never called: `head` computes only the rows that predict a trained token, and
never holds all logits. Those of a chunk of rows exist once in the forward pass and once more in the backward pass.
"""

import functools
import gc
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM

from .adapter import LINEARS, Adapter, unflatten
from .attention import NAME, RowMask, widens
from .batch import Memory, MicroBatch, Rows, Segment, whole_numbers

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# Passes of a compiled model have at least so many rows, and a multiple of it.
ROW_STEP = 512
# How many sizes a model may be compiled for.
MOST_SIZES = 128
# So few rows are not worth a compilation of their own when nothing is trained.
FEW_ROWS = 512
# Bytes of float32 logits that exist at once.
CHUNK_BYTES = {"cpu": 2**26, "cuda": 2**30}
# Below the largest logit. Its probability is 0 in float32.
LEAST_LOGIT = -1e30
# Share of the free memory that activations may take. The rest is for the head's logits and for fragments.
MEMORY_SHARE = 0.85

# CUDA's own memory, and the adapter with its moments.
OVERHEAD_BYTES = 4 * 2**30


class ModelError(Exception):
    """The model cannot be trained here. The message is for the user."""


class LoraLinear(nn.Module):
    """y = W x + s B (A x), in the type of W. `a` and `b` are set before every pass."""

    def __init__(self, linear: nn.Linear, wide: bool):
        """`wide`: float32 with sums in float64."""
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        self.wide = wide
        self.a: Tensor | None = None
        self.b: Tensor | None = None
        self.scale = 0.0

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.weight.dtype)
        product = _WideProduct.apply if self.wide else F.linear
        y = product(x, self.weight, self.bias)
        if self.scale == 0.0:
            return y
        narrow = product(x, self.a.to(x.dtype), None)
        return y + product(narrow * self.scale, self.b.to(x.dtype), None)


class _WideProduct(torch.autograd.Function):
    """x Wᵀ + bias of float32 tensors, summed in float64 and rounded once. Keeps only float32 for the backward pass."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        y = x.double() @ weight.double().T
        return (y if bias is None else y + bias).to(x.dtype)

    @staticmethod
    def backward(ctx, d_y: Tensor):
        x, weight = ctx.saved_tensors
        d_y = d_y.double()
        d_x = d_weight = None
        if ctx.needs_input_grad[0]:
            d_x = (d_y @ weight.double()).to(x.dtype)
        if ctx.needs_input_grad[1]:
            d_weight = (d_y.flatten(0, -2).T @ x.double().flatten(0, -2)).to(weight.dtype)
        return d_x, d_weight, None


@dataclass
class Pass:
    """Log-probabilities and entropies of the trained tokens, in the order of the rows' sequences."""

    logprobs: Tensor
    entropies: Tensor


class TrainableModel:
    @staticmethod
    def load(folder: str, dtype: str, device: torch.device, mesh: DeviceMesh | None = None) -> "TrainableModel":
        try:
            model = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=DTYPES[dtype],
                attn_implementation=NAME,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,  # other files are pickled programs
            )
        except OSError as error:
            raise ModelError(f"transformers cannot read the weights: {error}") from error
        return TrainableModel(model, device, mesh)

    def __init__(self, model, device: torch.device, mesh: DeviceMesh | None = None):
        """`model`: a causal language model of transformers, with the attention of this package.

        `mesh`: the ranks that each hold a part of every layer and gather a layer when it runs. All must then run the
        same number of passes. None: this process holds the whole model.
        """
        check_trainable(model)
        self.device = device
        self.dtype = model.dtype
        if self.dtype is torch.float32 and device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = False
        self.config = model.config.get_text_config()
        # Granite divides its logits, which are linear in the hidden states
        self.logits_scaling = getattr(self.config, "logits_scaling", None) or 1.0
        self.sharded = mesh is not None
        self.body = model.model.requires_grad_(False)
        if not self.sharded:
            self.body.to(device)
        self.head_weight = model.get_output_embeddings().weight.to(device)
        held = {tensor.data_ptr(): tensor for tensor in (*self.body.parameters(), self.head_weight)}
        self.weight_bytes = sum(tensor.nbytes for tensor in held.values())
        self.layer_bytes = sum(tensor.nbytes for tensor in self.body.layers[0].parameters())
        self.linears: dict[str, LoraLinear] = {}
        for index, layer in enumerate(self.body.layers):
            for name, path in LINEARS.items():
                parent, _, child = path.rpartition(".")
                owner = layer.get_submodule(parent)
                replaced = LoraLinear(getattr(owner, child), widens(self.dtype, device))
                setattr(owner, child, replaced)
                self.linears[f"{index}.{name}"] = replaced
        self.flex = device.type == "cuda" and self.dtype is torch.bfloat16
        if self.flex:
            torch._dynamo.config.recompile_limit = MOST_SIZES
        self.windows = {None, getattr(self.config, "sliding_window", None)}
        self.recompute = False
        for layer in self.body.layers:
            layer.forward = self._layer_forward(layer.forward)
        if mesh is not None:
            self._divide(mesh)

    def _divide(self, mesh: DeviceMesh) -> None:
        """One layer after the other, so that a GPU never holds more than its part and one layer.

        The factors of LoRA are no parameters of the layers, so they stay whole on every rank.
        """
        for layer in self.body.layers:
            layer.to(self.device)
            fully_shard(layer, mesh=mesh, reshard_after_forward=True)
        for name, child in self.body.named_children():
            if name != "layers":
                child.to(self.device)
        self.weight_bytes -= self.layer_bytes * self.layers * (mesh.size() - 1) // mesh.size()

    def _layer_forward(self, plain):
        """Layers are compiled one by one. They are alike, so all share the compilation for a number of rows."""
        compiled = torch.compile(plain, dynamic=False) if self.flex else plain

        def run(hidden, *args, **kwargs):
            trains = torch.is_grad_enabled()
            forward = compiled if trains or hidden.shape[1] > FEW_ROWS else plain
            if self.recompute and trains:
                return checkpoint(forward, hidden, *args, use_reentrant=False, **kwargs)
            return forward(hidden, *args, **kwargs)

        return run

    @property
    def layers(self) -> int:
        return len(self.body.layers)

    def set_adapter(self, params: Tensor, adapter: Adapter, scale: float, gradient: Tensor | None = None) -> None:
        """Uses these flat parameters from now on. A scale of 0 is the base model. Backward adds to `gradient`."""
        grads = None if gradient is None else unflatten(gradient, adapter)
        for name, tensor in unflatten(params, adapter).items():
            layer, linear, factor = name.split(".")
            target = self.linears[f"{layer}.{linear}"]
            leaf = tensor.detach()
            if grads is not None:
                leaf.requires_grad_(True)
                leaf.grad = grads[name]
            setattr(target, factor, leaf)
            target.scale = scale

    def forward(self, batch: MicroBatch) -> Pass:
        rows = batch.rows
        self.recompute = batch.recompute
        padded = padded_rows(len(rows.ids)) if self.flex else len(rows.ids)
        pad = padded - len(rows.ids)
        ids = F.pad(whole_numbers(rows.ids), (0, pad))[None].to(self.device)
        positions = F.pad(whole_numbers(rows.positions), (0, pad))[None].to(self.device)
        mask = RowMask(rows, padded, self.windows, self.device, self.flex)
        embedded = self.embed(ids)
        # so that the first layer is compiled like all others
        embedded.requires_grad_(torch.is_grad_enabled())
        out = self.body(inputs_embeds=embedded, position_ids=positions, use_cache=False, rows=mask)
        hidden = out.last_hidden_state[0]
        read, targets = (whole_numbers(values).to(self.device) for values in (rows.read_rows, rows.targets))
        return Pass(*head(hidden[read].float() / self.logits_scaling, self.head_weight, targets))

    def embed(self, ids: Tensor) -> Tensor:
        """float32, so that what the layers add to stays float32. Rounding it after every addition costs digits."""
        return self.body.embed_tokens(ids).float()

    def empty_pass(self) -> None:
        """Runs all layers for nothing, while other ranks that hold parts of them still need this one."""
        rows = Rows([0], [0], [Segment(0, 1, 0, -1)])
        rows.read_rows, rows.targets = [0], [0]
        out = self.forward(MicroBatch(rows, recompute=False)).logprobs
        if torch.is_grad_enabled():
            out.backward(torch.zeros_like(out))

    def finite_after_training(self, ids: list[int]) -> bool:
        """Whether the model still gives finite numbers on a few tokens."""
        rows = Rows(ids, list(range(len(ids))), [Segment(0, len(ids), 0, -1)])
        rows.read_rows, rows.targets = list(range(len(ids) - 1)), ids[1:]
        with torch.no_grad():
            return bool(self.forward(MicroBatch(rows, recompute=False)).logprobs.isfinite().all())

    def memory(self, activation_bytes: int) -> Memory:
        """`activation_bytes` counts on the processor; a GPU gives a share of its free memory."""
        budget = activation_bytes
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()
            free, total = torch.cuda.mem_get_info(self.device)
            if torch.are_deterministic_algorithms_enabled():
                # other programs must not change how a step is divided, because that changes the last bits
                free = total - self.weight_bytes - OVERHEAD_BYTES
            # the layer that runs and the next one are whole
            budget = int((free - (2 * self.layer_bytes if self.sharded else 0)) * MEMORY_SHARE)
        kept, recomputed = row_bytes(self.config, self.dtype, self.device)
        return Memory(rows=max(1, budget // kept), recomputed_rows=max(1, budget // recomputed))


def padded_rows(count: int) -> int:
    """Four sizes between a power of two and the next. Compiling once for any number takes minutes."""
    step = max(ROW_STEP, 2 ** (count.bit_length() - 3))
    return -(-count // step) * step


def row_bytes(config, dtype: torch.dtype, device: torch.device) -> tuple[int, int]:
    """Bytes of one row when all layers keep what the backward pass needs, and when they compute it again."""
    size, hidden, wide = dtype.itemsize, config.hidden_size, config.intermediate_size
    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or hidden // heads
    projected = (heads + 2 * config.num_key_value_heads) * head_dim
    # inputs of the linear layers, results of rotation and activation; what layers add to is float32
    layer = size * (5 * hidden + 3 * projected + 4 * wide) + 4 * 2 * hidden
    # input and output of a product in float64, and their gradients
    product = 2 * 8 * (hidden + wide) if widens(dtype, device) else 0
    # all layers keep their input, float32; one at a time is computed again, with its gradients
    recomputed = int(config.num_hidden_layers * 4 * hidden + 1.5 * layer)
    return config.num_hidden_layers * layer + product, recomputed + product


def check_trainable(model) -> None:
    """Raises ModelError for a model whose parts are not where this trainer looks."""
    config = model.config.get_text_config()
    kind = config.model_type
    body = getattr(model, "model", None)
    layers = getattr(body, "layers", None)
    if layers is None or not hasattr(body, "embed_tokens"):
        raise ModelError(f"models of type {kind} cannot be trained: their layers are not where this trainer looks")
    for index, layer in enumerate(layers):
        for path in LINEARS.values():
            try:
                found = layer.get_submodule(path)
            except AttributeError:
                found = None
            if not isinstance(found, nn.Linear):
                raise ModelError(f"models of type {kind} cannot be trained: layer {index} has no linear layer {path}")
    scaled = {name: getattr(config, name, None) for name in ("final_logit_softcapping", "logit_scale")}
    used = next((name for name, value in scaled.items() if value not in (None, 1, 1.0)), None)
    if used is not None:
        raise ModelError(f"models with {used} cannot be trained")
    if getattr(model.get_output_embeddings(), "bias", None) is not None:
        raise ModelError("models whose head has a bias cannot be trained")


def head(hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """hidden float32 [rows, width], weight [vocabulary, width], targets [rows] → logprobs and entropies, [rows] float32.

    Entropies are constants: they carry no gradient.
    """
    return _Head.apply(hidden, weight, targets)


class _Head(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        logprobs = torch.empty(len(hidden), device=hidden.device)
        entropies = torch.empty_like(logprobs)
        totals = torch.empty_like(logprobs)
        for rows in _chunks(hidden, weight):
            logits = _logits(hidden[rows], weight)
            powers = logits.exp()
            sums = powers.sum(-1)
            totals[rows] = sums.log()
            logprobs[rows] = logits.gather(-1, targets[rows, None])[:, 0] - totals[rows]
            # sum p (total - logit)
            entropies[rows] = totals[rows] - torch.linalg.vecdot(powers, logits) / sums
        ctx.save_for_backward(hidden, weight, targets, totals)
        ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx, d_logprobs: Tensor, _: Tensor | None):
        hidden, weight, targets, totals = ctx.saved_tensors
        d_hidden = torch.empty_like(hidden)
        for rows in _chunks(hidden, weight):
            logits = _logits(hidden[rows], weight)
            # d logprob / d logits = onehot - p
            d_logits = logits.sub_(totals[rows, None]).exp_().mul_(-d_logprobs[rows, None])
            d_logits.scatter_add_(-1, targets[rows, None], d_logprobs[rows, None])
            if widens(weight.dtype, weight.device):
                d_hidden[rows] = (d_logits.double() @ weight.double()).to(hidden.dtype)
            else:
                d_hidden[rows] = (d_logits.to(weight.dtype) @ weight).to(hidden.dtype)
        return d_hidden, None, None


def _logits(hidden: Tensor, weight: Tensor) -> Tensor:
    """hidden float32 [rows, width], weight [vocabulary, width] → float32, less the largest of each row.

    Likely tokens are near 0 then, where float32 has the most digits. Sums of bfloat16 products stay float32: rounded to
    bfloat16, a logit of 20 would be off by a twentieth.
    """
    if widens(weight.dtype, weight.device):
        logits = hidden.double() @ weight.double().T
    elif weight.dtype is torch.float32 or hidden.device.type == "cpu":
        logits = hidden @ weight.float().T
    elif _sums_stay_wide(hidden.device):
        logits = torch.mm(hidden.to(weight.dtype), weight.T, out_dtype=torch.float32)
    else:
        logits = (hidden.to(weight.dtype) @ weight.T).float()
    logits -= logits.amax(-1, keepdim=True)
    # 0 times minus infinity is no number
    return logits.float().clamp_(min=LEAST_LOGIT)


@functools.cache
def _sums_stay_wide(device: torch.device) -> bool:
    """Whether this torch (2.8 or newer) gives the float32 sums of a product of bfloat16 matrices on this device."""
    ones = torch.ones(16, 16, dtype=torch.bfloat16, device=device)
    try:
        return torch.mm(ones, ones.T, out_dtype=torch.float32).dtype is torch.float32
    except (RuntimeError, TypeError):
        return False


def _chunks(hidden: Tensor, weight: Tensor):
    size = max(16, CHUNK_BYTES[hidden.device.type] // (4 * len(weight)))
    for start in range(0, len(hidden), size):
        yield slice(start, start + size)
