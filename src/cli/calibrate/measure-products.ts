/** Products: their rates by shape, what a device keeps of these under load and with a margin, and what a product and a transfer take beside each other. */
import type { Program } from "../../commands/program.ts";
import { dtypes, type DType } from "../../numerics/dtype.ts";
import type { ProductShape } from "../../simulate/interpolate.ts";
import { type MarginGrid, measuredMargin, type ProductGrid, type Sustained } from "../../simulate/machine-profile.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Calibration } from "./calibration-host.ts";
import { collectiveProbes, gatherAndMultiply, multiplyAndReduce, product } from "./probe-fusions.ts";

/** One product in a run: the shortest load of its shape. */
export async function productGrid({ devices, sizes, say, took }: Calibration, dtype: DType): Promise<ProductGrid> {
  const { m, n, k } = sizes;
  const teraflops: number[] = [];
  for (const rows of m) {
    say(`products in ${dtype} of ${rows} rows`);
    for (const columns of n) {
      for (const contracted of k) {
        const shape: ProductShape = { m: rows, n: columns, k: contracted };
        const time = await took(product(devices, shape, dtype), {}, "median");
        teraflops.push((2 * rows * columns * contracted) / time / 1e6);
      }
    }
  }
  return { dtype, m, n, k, teraflops };
}

/** More and more products of one shape in a run: how many times as long as alone each takes. It only grows. */
export async function sustainedProducts({
  devices,
  sizes,
  say,
  took,
}: Pick<Calibration, "devices" | "sizes" | "say" | "took">): Promise<readonly Sustained[]> {
  const { shape, counts } = sizes.sustained;
  const found: Sustained[] = [];
  for (const count of counts) {
    say(`${count} products in a run`);
    const microseconds = await took(product(devices, shape, at(sizes.dtypes, 0), count), {}, "median");
    const [first, last] = [found[0], found.at(-1)];
    // Fewer products were disturbed: that they take longer says nothing of load.
    if (last !== undefined && microseconds <= last.microseconds) continue;
    const factor = first === undefined ? 1 : microseconds / count / first.microseconds;
    found.push({ microseconds, factor: Math.max(last?.factor ?? 1, factor) });
  }
  return found;
}

/**
 * How many times as long a product and a transfer take beside each other, in the mean of two pipelines by the library.
 *
 *     two chunks, gathered and multiplied:    gather 1, gather 2 | product 1, product 2
 *     four, multiplied and reduced:           product 1, product 2, reduce 1 | product 3, reduce 2 | product 4, reduce 3, reduce 4
 *
 * A reduction begins no sooner than the product ends that runs when it could. What a pipeline takes longer than this path was lost while a
 * transfer and a product were under way together.
 */
export async function slowdownBesideTransfer({ devices, sizes, say, took }: Calibration): Promise<number> {
  say("products beside a transfer");
  const { beside } = sizes;
  const dtype = at(sizes.dtypes, 0);
  const { bytes } = dtypes[dtype];
  const [half, quarter] = [2, 4].map((parts): ProductShape => ({ ...beside, m: beside.m / parts }));
  invariant(half !== undefined && quarter !== undefined, "rows are cut in two and in four");
  const library = { lowering: { communicatorBackend: "nccl" } } as const;
  const gather = await took(collectiveProbes.Allgather(devices, half.m * half.k * bytes), library);
  const halves = await took(product(devices, half, dtype, 2), {}, "median");
  const gathered = await took(gatherAndMultiply(devices, beside, dtype), library, "median");
  const reduce = await took(collectiveProbes.Allreduce(devices, quarter.m * quarter.n * bytes), library);
  const quarters = await took(product(devices, quarter, dtype, 4), {}, "median");
  const afterwards = { lowering: { ...library.lowering, insertReshardingAfter: true } };
  const reduced = await took(multiplyAndReduce(devices, beside, dtype), afterwards, "median");
  const lost = [(gathered - gather - halves) / gather, (reduced - quarters - 2 * reduce) / (2 * reduce)];
  const mean = lost.reduce((sum, each) => sum + each, 0) / lost.length;
  return 1 + Math.min(1, Math.max(0, mean));
}

/** How many times as long products take that leave room for a kernel in peers' memory. */
export async function slowdownWithMargin({ devices, sizes, say, took }: Calibration): Promise<MarginGrid> {
  const { m, n, k } = sizes.margins;
  const factors: number[] = [];
  for (const rows of m) {
    say(`products with a margin, of ${rows} rows`);
    for (const columns of n) {
      const fusion = product(devices, { m: rows, n: columns, k }, at(sizes.dtypes, 0));
      const whole = await took(fusion, {}, "median");
      const less = await took(fusion, { rewrite: withMargin }, "median");
      factors.push(Math.max(1, less / whole));
    }
  }
  return { m, n, factors };
}

/** Also where nothing runs beside it. */
function withMargin(program: Program): Program {
  return {
    ...program,
    ranks: program.ranks.map((rank) => ({
      ...rank,
      commands: rank.commands.map((command) =>
        command.kind === "launch" ? { ...command, smMargin: measuredMargin } : command,
      ),
    })),
  };
}
