/** The executor verifies a Program before its first run, once per set of sizes, and throws the findings. */
import { describe, expect, test } from "vitest";
import {
  DiagnosticError,
  type HostProgram,
  HostProgramBuilder,
  MultiDeviceExecutor,
  Tensor,
} from "@braid-compiler/braid";

/** z = x + x on a stream of its own, which the caller's stream waits for or does not. */
function sideStream(joined: boolean, extent: number | null = 4): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([extent]);
  const z = h.tensor(x.extents);
  h.output(z);
  const caller = h.getCurrentStream();
  const side = h.stream(0);
  h.setCurrentStream(side);
  h.synchronize(caller);
  h.add(x, x, { out: z });
  h.setCurrentStream(caller);
  if (joined) h.synchronize(side);
  return h.build();
}

/** Codes of what is thrown, after the step that throws it. */
async function codesOf(program: HostProgram, verify?: "on" | "off"): Promise<readonly string[]> {
  const codes = (when: string, error: unknown): readonly string[] => {
    if (!(error instanceof DiagnosticError)) throw error;
    return [when, ...error.diagnostics.map(({ code }) => code)];
  };
  let executor;
  try {
    executor = await MultiDeviceExecutor.create(program, { devices: 1, ...(verify === undefined ? {} : { verify }) });
  } catch (error) {
    return codes("create", error);
  }
  try {
    await executor.run([Tensor.zeros([4])]);
    return [];
  } catch (error) {
    return codes("run", error);
  } finally {
    await executor.close();
  }
}

describe("verify", () => {
  test("runs what verifies", async () => expect(await codesOf(sideStream(true))).toEqual([]));

  test("refuses at once what runs on without the caller, where all sizes are known", async () => {
    // The output may be read too early, and the input overwritten.
    expect(await codesOf(sideStream(false))).toEqual(["create", "data-race", "data-race"]);
    expect(await codesOf(sideStream(false), "on")).toEqual(["create", "data-race", "data-race"]);
  });

  test("refuses it at the first run, where the inputs give the sizes", async () => {
    expect(await codesOf(sideStream(true, null))).toEqual([]);
    expect(await codesOf(sideStream(false, null))).toEqual(["run", "data-race", "data-race"]);
  });

  test("off: runs it all the same", async () => {
    expect(await codesOf(sideStream(false), "off")).toEqual([]);
    expect(await codesOf(sideStream(false, null), "off")).toEqual([]);
  });
});
