/**
 * Compares results on GPUs with the oracle's: every kernel and attention on this rank's GPU, programs and nvFuser's
 * multi-device tests over all GPUs, in every idiom, eager and replayed. A failed run over all GPUs ends the part,
 * because the streams of its Group may wait forever.
 */
import { sharedGroups, soloBackend } from "../../bench/harness/gpu-groups.ts";
import { goesOn, type PartContext, requireNone, type Row, rowOf, waysOf } from "../../bench/harness/rows.ts";
import { createCudaBackend } from "../../src/cuda.ts";
import { checkCase } from "../../test/gpu/check-case.ts";
import { expectationsOf } from "../../test/gpu/expectation.ts";
import { modelCases } from "../../test/gpu/model-cases.ts";
import { referenceCases } from "../../test/gpu/reference/reference-cases.ts";
import { singleGpuCases } from "../../test/gpu/single-gpu-cases.ts";
import { worldCases } from "../../test/gpu/world-cases.ts";

const timeout = 20;

/** One row for all kernels that pass, and one for each that fails. */
export async function* kernelRows({ world, only }: PartContext): AsyncGenerator<Row> {
  // Cases are distributed over the ranks, because every rank has its own GPU.
  const cases = [...singleGpuCases, ...modelCases].filter(({ name }) => only?.test(name) !== false);
  const own = cases.filter((_, i) => i % world.worldSize === world.rank);
  let passed = 0;
  for (const { name, build } of own) {
    const on = soloBackend(world, "on");
    const row = await rowOf(name, async () => {
      const fusion = build();
      requireNone(await checkCase(fusion, expectationsOf(fusion), { rank: 0, devices: 1, on, repeat: 2 }));
      return "passed";
    });
    if (row.ok) passed++;
    else yield row;
  }
  const text = `${passed} of ${own.length} cases passed on this rank`;
  yield { name: "kernels against the oracle", ok: passed === own.length, text };
}

export async function* worldRows({ world, only }: PartContext): AsyncGenerator<Row> {
  const { rank, worldSize: devices } = world;
  for (const { name, build, options } of worldCases.filter((each) => only?.test(each.name) !== false)) {
    const expectations = expectationsOf(build(devices));
    for (const { lowering, graph, label } of waysOf(options)) {
      yield await rowOf(`${name}, ${label}`, async () => {
        const start = performance.now();
        // Each case has its own Group, because opening and closing are part of the test.
        const on = createCudaBackend({ rendezvous: world, graph, timeout });
        const given = { ...lowering, rank, devices, on, repeat: 4, timeout };
        requireNone(await checkCase(build(devices), expectations, given));
        return `${(performance.now() - start).toFixed(0)} ms`;
      });
      if (!(await goesOn(world))) return;
    }
  }
}

interface ReferencePlan {
  /** Selects rows by name. */
  readonly wanted?: (name: string) => boolean;
}

/** A row for each of nvFuser's tests, and one for each way of running it that fails. */
export async function* referenceRows(
  { world }: PartContext,
  { wanted = () => true }: ReferencePlan = {},
): AsyncGenerator<Row> {
  const { rank, worldSize: devices } = world;
  const groups = sharedGroups(world, timeout);
  for (const [file, tests] of Object.entries(referenceCases)) {
    for (const test of tests) {
      const name = `${file}, ${test.name}`;
      if (!test.runsOn(devices) || !wanted(name)) continue;
      const start = performance.now();
      const expectations = test.expectations(devices);
      let passed = 0;
      const ways = waysOf(test.lowerings);
      for (const { lowering, graph, label } of ways) {
        let done = false;
        const row = await rowOf(`${name}, ${label}`, async () => {
          const options = { ...lowering, rank, devices, on: groups[graph].on, timeout, repeat: test.repeat };
          const problems = await checkCase(test.source(devices, lowering), expectations, options);
          done = true;
          requireNone(problems);
          return "";
        });
        if (row.ok) passed++;
        else yield row;
        if (!(await goesOn(world, done))) return;
      }
      const text = `${passed} of ${ways.length} ways, ${(performance.now() - start).toFixed(0)} ms`;
      yield { name, ok: passed === ways.length, text, cases: passed };
    }
  }
  for (const group of [groups.off, groups.on]) await group.close();
}
