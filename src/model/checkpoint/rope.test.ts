import { describe, expect, test } from "vitest";
import { ConfigFields } from "./config-fields.ts";
import { inverseFrequencies, parseRope, type RopeSpec, takesLongFactors } from "./rope.ts";

function spec(json: Record<string, unknown> | null, maxPositions = 512): RopeSpec {
  return parseRope(json === null ? null : new ConfigFields("config.json", json), 10_000, {
    ...{ max: maxPositions, original: null, headDim: 16, share: 1, partial: false },
  });
}

const factors = { short_factor: [1, 1, 1, 1, 1, 1, 1, 2], long_factor: [1, 2, 3, 4, 5, 6, 7, 8] };

function expectFrequencies(actual: Float64Array, expected: readonly number[]): void {
  expect([...actual]).toEqual(expected.map(Math.fround));
}

// Expected values: the formulas of transformers' modeling_rope_utils evaluated step by step in float32 with numpy,
// with a correctly rounded power function (float32 libraries differ in its last bit).
describe("frequencies", () => {
  test("plain", () => {
    expectFrequencies(
      inverseFrequencies(spec({ rope_theta: 1e6, rope_type: "default" }), 16),
      [1.0, 0.177827939, 0.0316227786, 0.00562341325, 0.00100000005, 0.00017782794, 3.16227743e-5, 5.62341347e-6],
    );
    expectFrequencies(inverseFrequencies(spec(null), 4), [1, 0.01]);
  });

  test("linear", () => {
    expectFrequencies(
      inverseFrequencies(spec({ rope_theta: 1e6, type: "linear", factor: 8 }), 16),
      [0.125, 0.0222284924, 0.00395284733, 0.000702926656, 0.000125000006, 2.22284925e-5, 3.95284678e-6, 7.02926684e-7],
    );
  });

  test("llama3, with waves of all three kinds", () => {
    const json = { rope_type: "llama3", rope_theta: 5e5, low_freq_factor: 1, high_freq_factor: 4 };
    expectFrequencies(
      inverseFrequencies(spec({ ...json, factor: 8, original_max_position_embeddings: 64 }), 16),
      [1.0, 0.079403013, 0.00470075384, 0.000911583134, 0.000176776681, 3.42810235e-5, 6.64786967e-6, 1.28917316e-6],
    );
    expectFrequencies(
      inverseFrequencies(spec({ ...json, factor: 32, original_max_position_embeddings: 8192 }), 32),
      [
        1.0, 0.440366626, 0.193922758, 0.0853971019, 0.0376060307, 0.0165604409, 0.00729266508, 0.00321144611,
        0.000429556705, 1.94616387e-5, 8.57025589e-6, 3.77405445e-6, 1.66196742e-6, 7.31874934e-7, 3.22293289e-7,
        1.41927202e-7,
      ],
    );
  });

  test("yarn", () => {
    const long = spec({ rope_type: "yarn", rope_theta: 1e6, factor: 4, original_max_position_embeddings: 32_768 });
    expectFrequencies(
      inverseFrequencies(long, 32),
      [
        1.0, 0.421696514, 0.177827939, 0.0749894157, 0.0316227786, 0.0133352149, 0.00477990136, 0.00165996165,
        0.000549999997, 0.000168678584, 4.44569851e-5, 1.87473561e-5, 7.90569356e-6, 3.33380353e-6, 1.40585337e-6,
        5.92843435e-7,
      ],
    );
    expect(long.attentionFactor).toBeCloseTo(0.1 * Math.log(4) + 1, 12);
    const untruncated = { rope_type: "yarn", factor: 2.5, original_max_position_embeddings: 4096, truncate: false };
    expectFrequencies(
      inverseFrequencies(spec(untruncated), 16),
      [1.0, 0.316227764, 0.100000001, 0.0292154439, 0.00724557694, 0.00166096119, 0.00039999999, 0.000126491112],
    );
  });
});

test("LongRoPE: two lists of divisors, and a factor on cos and sin from the growth of the context", () => {
  const long = spec({ rope_type: "longrope", original_max_position_embeddings: 64, ...factors });
  expect(long.attentionFactor).toBeCloseTo(Math.sqrt(1 + Math.log(8) / Math.log(64)), 12);
  const plain = [...inverseFrequencies(spec(null), 16)];
  const divided = (by: readonly number[]) => plain.map((frequency, i) => frequency / by[i]!);
  for (const [i, value] of divided(factors.short_factor).entries()) {
    expect(inverseFrequencies(long, 16)[i]).toBeCloseTo(value, 8);
  }
  for (const [i, value] of divided(factors.long_factor).entries()) {
    expect(inverseFrequencies(long, 16, true)[i]).toBeCloseTo(value, 8);
  }
  expect([64, 65].map((context) => takesLongFactors(long, context))).toEqual([false, true]);
  expect(spec({ type: "su", original_max_position_embeddings: 64, ...factors })).toEqual(long);
  const stated = { rope_type: "longrope", ...factors, attention_factor: 1.5 };
  expect(spec(stated)).toMatchObject({ attentionFactor: 1.5, scaling: { originalMaxPositions: 512 } });
});

describe("fields", () => {
  test("yarn's factor and attention factor when left out or given", () => {
    const base = { rope_type: "yarn", original_max_position_embeddings: 1024 };
    expect(spec(base, 4096)).toMatchObject({ scaling: { factor: 4, betaFast: 32, betaSlow: 1, truncate: true } });
    expect(spec({ ...base, factor: 4, attention_factor: 1.25 }).attentionFactor).toBe(1.25);
    expect(spec({ ...base, factor: 0.5 }).attentionFactor).toBe(1);
    const both = spec({ ...base, factor: 40, mscale: 0.7, mscale_all_dim: 1 }).attentionFactor;
    expect(both).toBeCloseTo((0.07 * Math.log(40) + 1) / (0.1 * Math.log(40) + 1), 12);
  });

  test("original positions default to the model's", () => {
    const json = { rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4 };
    expect(spec(json, 777)).toMatchObject({ scaling: { originalMaxPositions: 777 } });
  });

  test.each<[Record<string, unknown>, RegExp]>([
    [{ rope_type: "longrope" }, /short_factor must be a list of 8 positive numbers, it is missing/],
    [{ rope_type: "longrope", ...factors, long_factor: [1] }, /long_factor must be a list of 8 positive numbers/],
    [{ rope_type: "longrope", ...factors, long_mscale: 1.2 }, /long_mscale must be absent/],
    [{ type: "dynamic", factor: 2 }, /is not supported \(supported: default, linear, llama3, yarn, longrope\)/],
    [{ rope_type: "linear" }, /factor must be a positive number, it is missing/],
    [{ rope_type: "linear", factor: 0 }, /factor must be a positive number, found 0/],
    [{ rope_type: "llama3", factor: 8, low_freq_factor: 4, high_freq_factor: 4 }, /greater than low_freq_factor/],
    [{ rope_type: "default", partial_rotary_factor: 0.5 }, /partial_rotary_factor must be 1/],
    [{ rope_type: "linear", factor: 1e-300 }, /factor must be a positive number, found 1e-300/],
    [{ rope_theta: 1e39 }, /rope_theta must be a positive number, found 1e\+39/],
    [{ factor: 8 }, /rope_type must be a string where there is factor, it is missing/],
    [{ type: null, rope_theta: 5e5, full_attention: {} }, /rope_type must be a string where there is full_attention/],
    [{ rope_theta: "big" }, /rope_theta must be a positive number, found "big"/],
  ])("refuses %j", (json, message) => {
    expect(() => spec(json)).toThrow(message);
  });
});
