/** Several runs in one call, on worker threads and on the machine: as many as requested, within one timeout. */
import { afterAll, describe, expect, it } from "vitest";
import { link, type Prepared } from "@braid-compiler/braid";
import { openMachineGroup } from "../../../src/backends/cpu/machine-group.ts";
import { openThreadedGroup } from "../../../src/backends/cpu/threads/threaded-group.ts";
import { at } from "../../../src/support/invariant.ts";
import { buildLists } from "../../machine/list-builder.ts";

/** Every run adds the input to the output. */
const program = link(
  buildLists(1, (list) => {
    const [input, sum] = [list.input([4]), list.output([4])];
    list.binary(0, "add", sum, input, sum);
  }),
);
const [input, output] = [at(program.buffers, 0).id, at(program.buffers, 1).id];
const groups = { threads: openThreadedGroup({ workers: 1 }), machine: openMachineGroup({}) };
afterAll(() => groups.threads.close());

function sumOf(prepared: Prepared): readonly number[] {
  return [...new Float32Array(prepared.read(output).slice().buffer)];
}

describe.each(["threads", "machine"] as const)("runs in a row on the %s", (name) => {
  it("are all made, and reported together", async () => {
    const prepared = await groups[name].prepare(program);
    prepared.write(input, new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
    const { trace } = await prepared.execute({ runs: 3, timeout: 10 });
    expect(sumOf(prepared)).toEqual([3, 6, 9, 12]);
    expect(trace).toEqual([]);
    await expect(prepared.execute({ runs: 1e9, timeout: 0.02 })).rejects.toThrow("timed-out");
    await prepared.execute({ runs: 1, trace: true });
  });

  it.each([
    [{ runs: 0 }, "a whole number of at least 1"],
    [{ runs: 1.5 }, "a whole number of at least 1"],
    [{ runs: 2, trace: true }, "1 with trace: true"],
  ])("are refused as %j", async (options, expected) => {
    const prepared = await groups[name].prepare(program);
    prepared.write(input, new Uint8Array(Float32Array.of(1, 1, 1, 1).buffer));
    const refused = { code: "bad-option", expected, found: String(options.runs) };
    await expect(prepared.execute(options)).rejects.toMatchObject({ diagnostics: [refused] });
    expect(sumOf(prepared)).toEqual([0, 0, 0, 0]);
  });
});
