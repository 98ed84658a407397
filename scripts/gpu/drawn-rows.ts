/** Random graphs on GPUs, eager and as CUDA graphs. `drawn:'graph 17$'` runs the one of that number. */
import { sharedGroups } from "../../bench/harness/gpu-groups.ts";
import { goesOn, type PartContext, requireNone, type Row, rowOf } from "../../bench/harness/rows.ts";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { checkCase } from "../../test/gpu/check-case.ts";
import { drawnGraph, isRefusedStream } from "../../test/gpu/drawn-graphs.ts";

const timeout = 20;
/** How many graphs run without a name, and how many a name may select from. */
const [usual, most] = [150, 100_000];

/** A row for each graph that fails, and one for all others. */
export async function* drawnRows({ world, only }: PartContext): AsyncGenerator<Row> {
  const { rank, worldSize: devices } = world;
  const groups = sharedGroups(world, timeout);
  const counts = { passed: 0, refused: 0, failed: 0 };
  const isNamed = only !== undefined && only.source !== "(?:)";
  for (let seed = 1; seed <= (isNamed ? most : usual); seed++) {
    const name = `graph ${seed}`;
    if (only?.test(name) === false) continue;
    const { fusion, options, expectations } = drawnGraph(seed, devices);
    const on = groups[seed % 2 === 0 ? "on" : "off"].on;
    let done = false;
    const row = await rowOf(`${name} (${JSON.stringify(options)})`, async () => {
      try {
        const problems = await checkCase(fusion, expectations(), { ...options, rank, devices, timeout, on, repeat: 2 });
        done = true;
        requireNone(problems);
        counts.passed++;
      } catch (error) {
        if (!(error instanceof DiagnosticError) || !isRefusedStream(error)) throw error;
        done = true;
        counts.refused++;
      }
      return "";
    });
    if (!row.ok) {
      counts.failed++;
      yield row;
    }
    if (!(await goesOn(world, done))) break;
  }
  const { passed, refused, failed } = counts;
  yield { name: "drawn graphs", ok: failed === 0, text: `${passed} passed, ${refused} refused`, cases: passed };
  for (const group of [groups.off, groups.on]) await group.close();
}
