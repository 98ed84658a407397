/**
 * Runs nvFuser's matmuls with communication at full size, 32768 x 32768 x 1024, on all GPUs, in every idiom, eager and
 * as graphs. A failed run ends the part, because the streams of its Group may wait forever.
 */
import { secondsSince } from "../../bench/harness/figures.ts";
import { sharedGroups, soloBackend } from "../../bench/harness/gpu-groups.ts";
import { goesOn, type PartContext, requireNone, type Row, rowOf, waysOf } from "../../bench/harness/rows.ts";
import { checkLarge } from "../../test/gpu/large/check-large.ts";
import { type LargeCase, largeCases, type LargeSizes } from "../../test/gpu/large/large-cases.ts";
import { type LargeInputs, makeLargeInputs } from "../../test/gpu/large/large-inputs.ts";
import type { LargeDType } from "../../test/gpu/large/large-matrix.ts";

const fullSize: LargeSizes = { m: 32_768, k: 32_768, n: 1024, chunks: 8 };

interface LargePlan {
  readonly sizes?: LargeSizes;
  /** Selects cases by name. */
  readonly wanted?: (name: string) => boolean;
  /** nvFuser's tests use float; its users run bfloat16. */
  readonly dtypes?: readonly LargeDType[];
}

const timeout = 30;

export async function* largeRows(
  { world }: PartContext,
  { sizes = fullSize, wanted = () => true, dtypes = ["bfloat16", "float"] }: LargePlan = {},
): AsyncGenerator<Row> {
  const { rank, worldSize: devices } = world;
  const solo = soloBackend(world);
  const groups = sharedGroups(world, timeout);
  const cases = largeCases.filter(({ name }) => wanted(name));
  if (cases.length === 0) return;
  for (const dtype of dtypes) {
    const label = `${sizes.m} x ${sizes.k} x ${sizes.n}, ${dtype}`;
    const made: LargeInputs[] = [];
    yield await rowOf(`${label}: one GEMM on one GPU, and rows in double`, async () => {
      const start = performance.now();
      for (const mode of ["signs", "uniform"] as const) made.push(await makeLargeInputs(mode, sizes, dtype, solo));
      return secondsSince(start);
    });
    if (!(await goesOn(world, made.length === 2))) return;
    const [signs, uniform] = made;
    if (signs === undefined || uniform === undefined) return;
    for (const each of cases) {
      for (const { lowering, graph, label: way } of waysOf(loweringsOf(each, dtype))) {
        let ran = false;
        yield await rowOf(`${each.name}, ${label}, ${way}`, async () => {
          const start = performance.now();
          // The second run replays a graph with different inputs, for which results are exact.
          const inputs = [uniform, signs];
          const options = { ...lowering, devices, on: groups[graph].on, timeout };
          const problems = await checkLarge(each, { sizes, dtype, rank, inputs, options });
          ran = true;
          requireNone(problems);
          return secondsSince(start);
        });
        if (!(await goesOn(world, ran))) return;
      }
    }
  }
  for (const group of [groups.off, groups.on]) await group.close();
}

/** With float, only the two matmuls of nvFuser's tests, each in one idiom per back end. */
function loweringsOf({ lowerings, sharesK }: LargeCase, dtype: LargeDType): LargeCase["lowerings"] {
  if (dtype === "bfloat16") return lowerings;
  if (sharesK) return [];
  return lowerings.filter(({ insertReshardingAfter, p2p }) =>
    p2p === undefined ? insertReshardingAfter === false : p2p === "rotated",
  );
}
