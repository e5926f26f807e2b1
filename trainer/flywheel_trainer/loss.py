"""The policy loss of a gradient step and its derivative with respect to every token's log-probability.

A port of the server's src/training/gradient/{loss,importance,loss-diagnostics,token-numbers}.ts, in float64 and
vectorised. Both are tested against the same vectors. The derivative is written out, not left to autograd: caps, masks
and clips then mean the same in both trainers. The order of the numbered steps matters.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

# Ratios stop growing at e^50: beyond every sensible clip or cap, and their gradients still fit in a float32.
LARGEST_LOG_RATIO = 50.0
# Added to the number of tokens that the ratio of a sequence is a mean over, as ART does.
COUNT_EPSILON = 1e-8

# Default epsilon and epsilon_high of each algorithm; None: the same as epsilon.
ALGORITHMS: dict[str, tuple[float, float | None]] = {"cispo": (1.0, 4.0), "ppo": (0.2, None)}


@dataclass
class LossInputs:
    """Trained tokens only, one sequence after the other. All tensors are float64 on the CPU."""

    logprobs: Tensor
    """Under the current weights."""
    old_logprobs: Tensor
    """NaN = unknown. The current value is used as a constant, so the ratio is 1."""
    advantages: Tensor
    weights: Tensor
    counts: Tensor
    """Number of tokens of each sequence, int64."""
    sampler_logprobs: Tensor | None
    """The sampler's values, if `old_logprobs` were recomputed before the first step."""
    reference_logprobs: Tensor | None
    kl_mean: float | None
    """`kl_mean` of the whole gradient step. None: these tokens are all of it."""
    step_tokens: int
    """Number of trained tokens in the whole gradient step; these may be a part of it."""


@dataclass
class LossOutputs:
    loss: float
    """Sum over these tokens, divided by `step_tokens`."""
    gradient: Tensor
    """d loss / d logprobs."""
    old: Tensor
    """The old log-probabilities, or the current ones where they are unknown."""
    ratio: Tensor
    """Importance ratio at the configured level, before cap and mask."""
    advantage: Tensor
    """After tau and KL penalty."""
    kl_to_reference: Tensor | None


def ratio_of(difference: Tensor) -> Tensor:
    return difference.clamp(max=LARGEST_LOG_RATIO).exp()


def clip_range(config: dict) -> tuple[float, float]:
    epsilon_default, high_default = ALGORITHMS[config["algorithm"]]
    epsilon = epsilon_default if config["epsilon"] is None else config["epsilon"]
    high = config["epsilonHigh"]
    if high is None:
        high = epsilon if high_default is None else high_default
    return 1 - epsilon, 1 + high


class _Sequences:
    """Means over the tokens of each sequence."""

    def __init__(self, counts: Tensor):
        self._of = torch.repeat_interleave(torch.arange(len(counts)), counts)
        self._counts = counts.double()

    def ratio_mean(self, values: Tensor) -> Tensor:
        """The mean over its sequence, for every token."""
        return (self._sums(values) / (self._counts + COUNT_EPSILON))[self._of]

    def _sums(self, values: Tensor) -> Tensor:
        return torch.zeros(len(self._counts), dtype=torch.float64).index_add_(0, self._of, values)


def policy_loss(inputs: LossInputs, config: dict) -> LossOutputs:
    logprobs = inputs.logprobs
    clip_low, clip_high = clip_range(config)
    sequences = _Sequences(inputs.counts)
    old = _known(inputs.old_logprobs, logprobs)
    difference = logprobs - old
    raw, own, shared = _ratios(difference, sequences, config["importanceSamplingLevel"])

    # 1. cap: a capped ratio is a constant
    cap = config["maxImportanceWeight"]
    capped = torch.zeros_like(raw, dtype=torch.bool) if cap is None else raw > cap
    ratio = raw if cap is None else raw.clamp(max=cap)
    # 2. mask
    masked = torch.zeros_like(capped)
    if config["maskProbRatio"]:
        masked = ~((ratio > clip_low) & (ratio < clip_high))
        ratio = torch.where(masked, 0.0, ratio)
    # 3. tau, 4. KL penalty: both change the advantage and carry no gradient
    advantage = inputs.advantages - (config["tau"] or 0.0) * difference
    kl = None
    if kl_needs(inputs.old_logprobs, inputs.reference_logprobs, config) != "nothing":
        kl = _kl_to_reference(logprobs, inputs.old_logprobs, inputs.reference_logprobs, config)
        centre = _mean(kl) if inputs.kl_mean is None else inputs.kl_mean
        advantage = advantage + config["klPenaltyCoef"] * (centre - kl)
    # 5. the algorithm
    clipped = ratio.clamp(clip_low, clip_high)
    zero = torch.zeros_like(ratio)
    if config["algorithm"] == "cispo":
        term, d_ratio, d_logprob = -clipped * advantage * logprobs, zero, -clipped * advantage
    else:
        inside = ratio * advantage <= clipped * advantage
        term = -torch.where(inside, ratio, clipped) * advantage
        d_ratio, d_logprob = torch.where(inside, -advantage, 0.0), zero
    # 6. truncated importance sampling, 7. weight and mean
    factor = _truncation(inputs, old, ratio, config) * inputs.weights / max(1, inputs.step_tokens)
    if not config["artExactMasking"]:
        factor = torch.where(masked, 0.0, factor)
    d_ratio = torch.where(capped | masked, 0.0, d_ratio * factor)
    gradient = d_logprob * factor + d_ratio * own + sequences.ratio_mean(d_ratio * shared)
    return LossOutputs(float((term * factor).sum()), gradient, old, raw, advantage, kl)


def _ratios(difference: Tensor, sequences: _Sequences, level: str) -> tuple[Tensor, Tensor, Tensor]:
    """The ratio per token, and its derivatives through the token itself and through the mean of its sequence."""
    mean = sequences.ratio_mean(difference)
    token, sequence = ratio_of(difference), ratio_of(mean)
    zero = torch.zeros_like(token)
    if level == "token":
        return token, token, zero
    if level == "sequence":
        return sequence, zero, sequence
    if level == "average":
        return (token + sequence) / 2, token / 2, sequence / 2
    if level == "geometric_average":
        # not the root of their product, because one may be 0 while the other is huge
        both = ratio_of((difference + mean) / 2)
        return both, both / 2, both / 2
    raise ValueError(f"unknown importance sampling level {level}")


def kl_needs(old: Tensor, reference: Tensor | None, config: dict) -> str:
    """Whether there is a KL penalty, and whether it needs the log-probabilities under the current weights."""
    if reference is None or config["klPenaltyCoef"] <= 0:
        return "nothing"
    return "old" if config["klPenaltySource"] == "sample" and not old.isnan().any() else "current"


def kl_mean(logprobs: Tensor, old: Tensor, reference: Tensor, config: dict) -> float:
    """Mean difference to the reference policy over all trained tokens of a gradient step."""
    return _mean(_kl_to_reference(logprobs, old, reference, config))


def _kl_to_reference(logprobs: Tensor, old: Tensor, reference: Tensor, config: dict) -> Tensor:
    source = _known(old, logprobs) if config["klPenaltySource"] == "sample" else logprobs
    return source - reference


def _known(old: Tensor, logprobs: Tensor) -> Tensor:
    return torch.where(old.isnan(), logprobs, old)


def _truncation(inputs: LossInputs, old: Tensor, ratio: Tensor, config: dict) -> Tensor:
    limit = config["truncatedImportanceSampling"]
    if limit is None:
        return torch.ones_like(ratio)
    sampler = inputs.sampler_logprobs
    if sampler is None:
        return ratio.clamp(max=limit)
    return torch.where(sampler.isnan(), 1.0, ratio_of(old - sampler)).clamp(max=limit)


@dataclass
class StepTokens:
    """The trained tokens of a gradient step, in the order of the batch. Float64."""

    logprobs: Tensor
    old: Tensor
    ratios: Tensor
    advantages: Tensor
    entropies: Tensor
    kl_to_reference: Tensor
    """Empty without a KL penalty."""


def step_diagnostics(tokens: StepTokens, config: dict) -> dict[str, float]:
    """How far the policy moved from the one that sampled, and how often ratios were clipped."""
    low, high = clip_range(config)
    moved = tokens.logprobs - tokens.old
    k3 = _mean(ratio_of(moved) - moved - 1)
    return {
        "entropy": _mean(tokens.entropies),
        "kl_policy_ref": _mean(tokens.kl_to_reference),
        "kl_old_new_k1": _mean(-moved),
        "kl_old_new_k3": k3,
        "kl_div": k3,
        "clip_frac_low": _mean((tokens.ratios < low).double()),
        "clip_frac_high": _mean((tokens.ratios > high).double()),
        "ratio_mean": _mean(tokens.ratios),
        "ratio_max": max(0.0, float(tokens.ratios.max())) if len(tokens.ratios) else 0.0,
        "adv_mean": _mean(tokens.advantages),
        "adv_std": _spread(tokens.advantages),
        "probs_corr": _probability_correlation(tokens.old, tokens.logprobs),
    }


# The numbers of a trained token in a job's file, in this order.
TOKEN_FIELDS = ("new_logprob", "ratio", "clipped", "advantage", "weight", "gradient", "entropy", "reference_kl")


def token_numbers(fields: dict[str, Tensor]) -> Tensor:
    """A row of float32 per token. NaN = does not apply. `fields`: those that apply, by name."""
    some = next(iter(fields.values()))
    return torch.stack([fields.get(name, torch.full_like(some, torch.nan)) for name in TOKEN_FIELDS], -1).float()


def clipped(ratio: Tensor, config: dict) -> Tensor:
    """-1 below the clip interval, 1 above it, else 0."""
    low, high = clip_range(config)
    return (ratio > high).double() - (ratio < low).double()


def sampler_difference(logprobs: Tensor, sampler: Tensor) -> dict[str, float]:
    """How far the sampler's values are from those of the trainer with the sampler's weights. NaN = unknown."""
    known = (logprobs - sampler).abs()[~sampler.isnan()]
    if len(known) == 0:
        return {}
    return {"sampler_logprob_diff_mean": _mean(known), "sampler_logprob_diff_max": float(known.max())}


def _probability_correlation(old: Tensor, current: Tensor) -> float:
    """Pearson correlation of the probabilities; 0 with fewer than two tokens or without variance."""
    if len(old) < 2:
        return 0.0
    a, b = old.exp(), current.exp()
    spread = _spread(a) * _spread(b)
    return _mean((a - a.mean()) * (b - b.mean())) / spread if spread > 0 else 0.0


def _mean(values: Tensor) -> float:
    return float(values.mean()) if len(values) else 0.0


def _spread(values: Tensor) -> float:
    """Population standard deviation."""
    return float(values.std(unbiased=False)) if len(values) else 0.0
