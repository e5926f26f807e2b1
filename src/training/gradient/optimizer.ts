// AdamW with decoupled weight decay and global gradient-norm clipping, as pure functions over named tensors. Parameters
// and moments are stored as float32; the arithmetic is float64. The caller chooses the learning rate of each step.

import type { OptimizerConfig } from "../config.ts";

export type NamedTensors = ReadonlyMap<string, Float32Array>;

export interface AdamState {
  /** Steps taken so far. */
  step: number;
  first: NamedTensors;
  second: NamedTensors;
}

export interface AdamUpdate {
  params: NamedTensors;
  state: AdamState;
  /** Global norm before clipping. */
  gradNorm: number;
}

const CLIP_EPSILON = 1e-6;

/** The largest float32. A moment that becomes infinite stays so, and its parameter would never change again. */
const LARGEST = (2 - 2 ** -23) * 2 ** 127;

export const adamW: {
  init(params: NamedTensors): AdamState;
  update(params: NamedTensors, grads: NamedTensors, state: AdamState, config: OptimizerConfig): AdamUpdate;
} = {
  init(params) {
    const zeros = () => new Map([...params].map(([name, value]) => [name, new Float32Array(value.length)]));
    return { step: 0, first: zeros(), second: zeros() };
  },

  update(params, grads, state, config) {
    const { learningRate, beta1, beta2, epsilon, weightDecay } = config;
    const gradNorm = globalNorm(grads);
    const clip = clipFactor(gradNorm, config.maxGradNorm);
    const step = state.step + 1;
    const correction1 = 1 - beta1 ** step;
    const correction2 = 1 - beta2 ** step;
    const next = { params: new Map<string, Float32Array>(), first: new Map(), second: new Map() };
    for (const [name, param] of params) {
      const grad = tensor(grads, name, param.length);
      const first = tensor(state.first, name, param.length);
      const second = tensor(state.second, name, param.length);
      const newParam = new Float32Array(param.length);
      const newFirst = new Float32Array(param.length);
      const newSecond = new Float32Array(param.length);
      for (let i = 0; i < param.length; i++) {
        const g = grad[i]! * clip;
        const m = beta1 * first[i]! + (1 - beta1) * g;
        const v = beta2 * second[i]! + (1 - beta2) * g * g;
        const decayed = param[i]! * (1 - learningRate * weightDecay);
        newParam[i] = decayed - (learningRate * (m / correction1)) / (Math.sqrt(v / correction2) + epsilon);
        newFirst[i] = m;
        newSecond[i] = Math.min(v, LARGEST);
      }
      next.params.set(name, newParam);
      next.first.set(name, newFirst);
      next.second.set(name, newSecond);
    }
    return { params: next.params, state: { step, first: next.first, second: next.second }, gradNorm };
  },
};

export function globalNorm(grads: NamedTensors): number {
  let sum = 0;
  for (const grad of grads.values()) for (let i = 0; i < grad.length; i++) sum += grad[i]! * grad[i]!;
  return Math.sqrt(sum);
}

/** Factor that reduces a gradient of this norm to the limit; 1 when it is below. */
export function clipFactor(norm: number, limit: number): number {
  return Math.min(1, limit / (norm + CLIP_EPSILON));
}

function tensor(tensors: NamedTensors, name: string, size: number): Float32Array {
  const value = tensors.get(name);
  if (!value || value.length !== size) throw new Error(`optimizer: tensor "${name}" is missing or has another size`);
  return value;
}
