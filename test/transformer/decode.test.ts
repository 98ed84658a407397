/** Steps of decoding, whose caches go from one to the next, give the rows of a causal pass over all tokens. */
import { expect, it } from "vitest";
import { Fusion, MultiDeviceExecutor, Tensor } from "@braid-compiler/braid";
import { angles } from "../../examples/transformer/llama-decode.ts";
import { createRandom } from "../../src/support/random.ts";
import { at } from "../../src/support/invariant.ts";
import { exampleFusion } from "../support/example-program.ts";

const [B, T, H, devices] = [2, 3, 16, 2];
const shared = { B, H, HEADS: 4, GROUPS: 2, FFN: 24, DTYPE: "double" } as const;

const random = createRandom(1);
function draw(shape: readonly number[]): Tensor<"double"> {
  const tensor = Tensor.zeros(shape, "double");
  for (let i = 0; i < tensor.data.length; i++) tensor.data[i] = random.integer(1001) / 1000 - 0.5;
  return tensor;
}

async function executorOf(name: string, params: Readonly<Record<string, number>>): Promise<MultiDeviceExecutor> {
  const fusion = await exampleFusion(`transformer/${name}.ts`, devices, { ...shared, ...params });
  return MultiDeviceExecutor.create(fusion, { devices });
}

const elements = (
  { data }: { readonly data: ArrayLike<number | bigint> },
  from: number,
  count: number,
): readonly number[] => Array.from({ length: count }, (_, i) => Number(at(data, from + i)));

it("at one position for each sequence", async () => {
  // The second sequence is a step behind. A sequence is at position -1 while it waits, which writes nothing.
  const behind = [0, 1];
  const whole = await executorOf("llama-block", { L: T, S: 1, SP: 0, BACKWARD: 0 });
  const step = await executorOf("llama-decode", { T });
  const f = new Fusion();
  for (const each of angles(f, f.input([B], "int64"), H / 4)) f.output(each);
  const cosinesAndSines = await MultiDeviceExecutor.create(f, { devices: 1 });
  const x = draw([B, T, H]);
  const weights = [[H], [2 * 4 * 4, H], [H, H], [H], [24, H], [24, H], [H, 24]].map(draw);
  const [expected] = await whole.run([x, ...weights]);
  const caches = [0, 1].map(() => Tensor.zeros([B, 2, 1, T, 4], "double"));
  const given = [...caches, ...weights];
  for (let i = 0; i < T + 1; i++) {
    const places = behind.map((by) => (i - by < T ? i - by : -1));
    const token = Tensor.zeros([B, H], "double");
    places.forEach((place, b) => {
      if (place >= 0) token.data.set(elements(x, (b * T + place) * H, H), b * H);
    });
    // The caches and weights stay where they are after the first step.
    const rest = i === 0 ? given : given.map(() => null);
    const position = Tensor.from(places, "int64");
    const turns = await cosinesAndSines.run([position]);
    const [z] = await step.run([token, position, ...turns, ...rest]);
    places.forEach((place, b) => {
      if (place < 0) return;
      const row = elements(at([z], 0) ?? x, b * H, H);
      elements(at([expected], 0) ?? x, (b * T + place) * H, H).forEach((y, j) => {
        expect(Math.abs(at(row, j) - y)).toBeLessThan(1e-12);
      });
    });
  }
  await Promise.all([whole, step, cosinesAndSines].map((each) => each.close()));
});
