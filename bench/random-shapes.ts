/**
 * Prints a configuration of `braid bench` for twelve shapes that nobody has chosen: `npx jiti bench/random-shapes.ts
 * PRIMITIVE SEED`. Extents are powers of two times an odd number below 16, drawn between 1,024 and 65,536. Shapes whose
 * GEMM takes more than about 15 ms on an H100, or whose tensors take more than 2 GiB, are drawn again.
 */
import process from "node:process";
import { createRandom } from "../src/support/random.ts";

const [primitive = "tp-columnwise", seed = "1"] = process.argv.slice(2);
const count = 12;
const [least, most] = [1024, 65_536];
const mostFlops = 1e13;
const mostElements = 2 ** 30;

const random = createRandom(Number(seed));

/** Spread evenly over the logarithm, rounded down to a multiple of a power of two with at most four leading bits. */
function extent(): number {
  const drawn = least * (most / least) ** random.float();
  const step = 2 ** (Math.floor(Math.log2(drawn)) - 3);
  return step * Math.floor(drawn / step);
}

function shape(): { readonly m: number; readonly k: number; readonly n: number } {
  for (;;) {
    const [m, k, n] = [extent(), extent(), extent()];
    const elements = Math.max(m * k, n * k, m * n);
    if (2 * m * n * k <= mostFlops && elements <= mostElements) return { m, k, n };
  }
}

const benchmark = {
  primitive,
  sizes: Array.from({ length: count }, shape),
  dtype: "bfloat16",
  num_iterations: 15,
  num_warmups: 4,
  validate: true,
  implementations: {
    braid: [{ scheduleChoice: "auto" }],
    "torch-nccl": [{}],
    ...(primitive === "tp-allreduce" ? { "torch-one-shot": [{}], "torch-two-shot": [{}] } : { "torch-async-tp": [{}] }),
  },
};
process.stdout.write(`${JSON.stringify({ benchmark }, null, 2)}\n`);
