/**
 * The example of experts against a sum over tokens and choices, for routings that fill buffers unevenly: bit for bit the
 * same on each schedule.
 */
import { describe, expect, it } from "vitest";
import { MultiDeviceExecutor, Tensor } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { exampleFusion } from "../support/example-program.ts";
import { runs } from "../support/suite.ts";

const name = "transformer/moe-experts.ts";
const [T, H, FFN] = [6, 4, 5];
const range = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

interface Routing {
  readonly devices: number;
  readonly TP: number;
  readonly E: number;
  readonly K: number;
  readonly C: number;
  /** The score of an expert for a token; ties go to the first expert. */
  readonly score: (token: number, expert: number) => number;
}

const random = createRandom(3);
const draw = (count: number): readonly number[] => range(count).map(() => random.integer(1001) / 1000 - 0.5);
const scores = draw(1024);

const routings: Readonly<Record<string, Routing>> = {
  "random ones": { devices: 2, TP: 1, E: 4, K: 2, C: 3, score: (t, e) => at(scores, t * 4 + e) },
  "all tokens to one expert": { devices: 2, TP: 1, E: 4, K: 1, C: 3, score: (_, e) => (e === 2 ? 1 : 0) },
  "ties alone": { devices: 2, TP: 1, E: 4, K: 3, C: 6, score: () => 0 },
  "no room at all": { devices: 2, TP: 1, E: 4, K: 2, C: 0, score: (t, e) => at(scores, t * 4 + e) },
  "8 experts over 3 devices": { devices: 3, TP: 1, E: 8, K: 2, C: 2, score: (t, e) => at(scores, t * 8 + e) },
  "experts by two, features by two": { devices: 4, TP: 2, E: 4, K: 2, C: 2, score: (t, e) => at(scores, t * 4 + e) },
  "features alone": { devices: 2, TP: 2, E: 3, K: 1, C: 6, score: (t, e) => at(scores, t * 3 + e) },
};

interface Drawn {
  readonly inputs: readonly Tensor<"double">[];
  readonly numbers: readonly (readonly number[])[];
}

/** Tokens whose first E features are the scores, so that the router may be the identity. */
function drawn({ devices, TP, E, score }: Routing, hidden: number): Drawn {
  const S = devices / TP;
  const x = range(S * T).flatMap((t) => range(hidden).map((j) => (j < E ? score(t, j) : at(scores, 7 * t + j))));
  const router = range(E).flatMap((e) => range(hidden).map((j) => Number(e === j)));
  const shapes = [
    [S, T, hidden],
    [E, hidden],
    [E, 1, 1, hidden, FFN],
    [E, 1, 1, hidden, FFN],
    [E, 1, 1, FFN, hidden],
  ];
  const size = E * hidden * FFN;
  const numbers = [x, router, draw(size), draw(size), draw(size)];
  const inputs = numbers.map((values, i) => {
    const tensor = Tensor.zeros(at(shapes, i), "double");
    tensor.data.set(values);
    return tensor;
  });
  return { inputs, numbers };
}

/** One choice after the other: the first C of a source's choices of an expert are computed. */
function expected({ devices, TP, E, K, C, score }: Routing, numbers: Drawn["numbers"], hidden: number): number[] {
  const [x, , gate, up, down] = [0, 1, 2, 3, 4].map((i) => at(numbers, i));
  if (x === undefined || gate === undefined || up === undefined || down === undefined) throw new Error("five inputs");
  return range(devices / TP).flatMap((source) => {
    const used = range(E).map(() => 0);
    return range(T).flatMap((own) => {
      const token = source * T + own;
      const row = x.slice(token * hidden, (token + 1) * hidden);
      const best = range(E).toSorted((a, b) => score(token, b) - score(token, a) || a - b).slice(0, K); // prettier-ignore
      const share = best.map((e) => Math.exp(score(token, e)));
      const y = range(hidden).map(() => 0);
      best.forEach((e, k) => {
        used[e] = at(used, e) + 1;
        if (at(used, e) > C) return;
        const project = (w: readonly number[], f: number): number =>
          row.reduce((sum, value, j) => sum + value * at(w, (e * hidden + j) * FFN + f), 0);
        range(FFN).forEach((f) => {
          const g = project(gate, f);
          const h = (g / (1 + Math.exp(-g))) * project(up, f);
          const weight = at(share, k) / share.reduce((sum, each) => sum + each, 0);
          for (const j of range(hidden)) y[j] = at(y, j) + weight * h * at(down, (e * FFN + f) * hidden + j);
        });
      });
      return y;
    });
  });
}

const schedules = [{ overlap: false }, { backend: "cuda" }, { deviceLoops: true }] as const;
/** Quick compares each routing's own schedule with one of these in turn, long with all. */
const others = (i: number): readonly (typeof schedules)[number][] =>
  runs({ quick: 1, long: 0 }) === 1 ? [at(schedules, i % schedules.length)] : schedules;

describe.each(Object.values(routings).map((routing, i) => [Object.keys(routings)[i], routing, i] as const))(
  "%s",
  (_, routing, i) => {
    it("give the sum over the choices that have room, and the same bits on each schedule", async () => {
      const { devices, TP, E, K, C } = routing;
      const hidden = Math.max(H, E);
      const { inputs, numbers } = drawn(routing, hidden);
      const results: (readonly number[])[] = [];
      for (const options of [{}, ...others(i)]) {
        const fusion = await exampleFusion(name, devices, { T, H: hidden, FFN, E, TOP: K, C, TP, DTYPE: "double" });
        const executor = await MultiDeviceExecutor.create(fusion, { devices, ...options });
        try {
          const [y] = await executor.run([...inputs]);
          results.push(Array.from(y?.data ?? [], Number));
        } finally {
          await executor.close();
        }
      }
      const [first = []] = results;
      for (const other of results) expect(other).toEqual(first);
      const wanted = expected(routing, numbers, hidden);
      expect(first).toHaveLength(wanted.length);
      first.forEach((value, i) => {
        expect(Math.abs(value - at(wanted, i))).toBeLessThan(1e-12);
      });
    });
  },
);

describe("as in DeepSeek-V3", () => {
  const [devices, TP, E, K, C, groups, best, shared] = [4, 2, 8, 3, 4, 4, 2, 2];
  const hidden = 8;
  const params = {
    T,
    H: hidden,
    FFN,
    E,
    TOP: K,
    C,
    GROUPS: groups,
    TOP_GROUPS: best,
    SHARED: shared,
    TP,
    DTYPE: "double",
  } as const;
  const S = devices / TP;
  const bias = range(E).map((e) => (e === 5 ? 0.9 : at(scores, 900 + e) / 4));
  const [x, router] = [
    range(S * T * hidden).map((i) => 4 * at(scores, i)),
    range(E * hidden).map((i) => at(scores, 300 + i)),
  ];
  const dot = (row: readonly number[], matrix: readonly number[], first: number, step: number): number =>
    row.reduce((sum, value, j) => sum + value * at(matrix, first + j * step), 0);
  const silu = (value: number): number => value / (1 + Math.exp(-value));

  /** The experts of a token and their shares, one rule after the other. */
  function chosen(row: readonly number[]): readonly (readonly [expert: number, weight: number])[] {
    const score = range(E).map((e) => 1 / (1 + Math.exp(-dot(row, router, e * hidden, 1))));
    const choice = score.map((value, e) => value + at(bias, e));
    const size = E / groups;
    const ofGroup = (g: number): number =>
      choice.slice(g * size, (g + 1) * size).toSorted((a, b) => b - a).slice(0, 2).reduce((a, b) => a + b); // prettier-ignore
    const kept = range(groups).toSorted((a, b) => ofGroup(b) - ofGroup(a)).slice(0, best); // prettier-ignore
    const experts = range(E)
      .filter((e) => kept.includes(Math.floor(e / size)))
      .toSorted((a, b) => at(choice, b) - at(choice, a))
      .slice(0, K);
    const whole = experts.reduce((sum, e) => sum + at(score, e), 0);
    return experts.map((e) => [e, at(score, e) / whole]);
  }

  it("a bias changes the choice alone, experts are of the best groups, and shared ones see all tokens", async () => {
    const [gate, up, down] = [draw(E * hidden * FFN), draw(E * hidden * FFN), draw(E * hidden * FFN)];
    const features = shared * FFN;
    const [sharedGate, sharedUp, sharedDown] = [0, 1, 2].map(() => draw(features * hidden));
    const given = [x, router, gate, up, down, bias, sharedGate, sharedUp, sharedDown];
    const fusion = await exampleFusion(name, devices, params);
    const inputs = fusion.inputs.map((tensor, i) => {
      const made = Tensor.zeros(tensor.extents.map((extent) => (extent.kind === "constant" ? extent.value : 0)), "double"); // prettier-ignore
      made.data.set(at(given, i) ?? []);
      return made;
    });
    const executor = await MultiDeviceExecutor.create(fusion, { devices });
    const [y] = await executor.run(inputs);
    await executor.close();
    const wanted = range(S).flatMap((source) => {
      const used = range(E).map(() => 0);
      return range(T).flatMap((own) => {
        const row = x.slice((source * T + own) * hidden, (source * T + own + 1) * hidden);
        const sums = range(hidden).map((j) =>
          range(features).reduce((sum, i) => {
            const [g, u] = [dot(row, sharedGate ?? [], i * hidden, 1), dot(row, sharedUp ?? [], i * hidden, 1)];
            return sum + silu(g) * u * at(sharedDown ?? [], j * features + i);
          }, 0),
        );
        for (const [e, weight] of chosen(row)) {
          used[e] = at(used, e) + 1;
          if (at(used, e) > C) continue;
          for (const i of range(FFN)) {
            const first = e * hidden * FFN + i;
            const value = silu(dot(row, gate, first, FFN)) * dot(row, up, first, FFN);
            for (const j of range(hidden))
              sums[j] = at(sums, j) + weight * value * at(down, (e * FFN + i) * hidden + j);
          }
        }
        return sums;
      });
    });
    const found = Array.from(y?.data ?? [], Number);
    expect(found).toHaveLength(wanted.length);
    found.forEach((value, i) => {
      expect(Math.abs(value - at(wanted, i))).toBeLessThan(1e-12);
    });
  });
});

it("sends buffers there and back along ep, and their numbers of rows", async () => {
  const fusion = await exampleFusion(name, 4, { TP: 2 });
  // Among each of two teams.
  expect(collectivesOf(fusion, 4)).toBe("AllToAll 6, Allreduce 2");
});
