/**
 * Workers that throw, die or never return inside a kernel, or inside a part of another worker's kernel. The run fails
 * and names the command, and the next run in the same group has the right result. The workers are the built ones; a few
 * lines that run before them make them misbehave.
 */
import { describe, expect, it } from "vitest";
import { DiagnosticError, type Group, link, type Prepared, type Program } from "@braid-compiler/braid";
import { openThreadedGroup } from "../../../src/backends/cpu/threads/threaded-group.ts";
import { buildLists } from "../../machine/list-builder.ts";

const misdeeds = {
  throws: `throw new Error("broken on purpose")`,
  dies: "process.exit(9)",
  "never returns": "for (;;);",
} as const;

/** `hook` may call `misbehave` and read `runs`, the number of the run in progress since the worker started. */
function workerWith(misdeed: keyof typeof misdeeds, hook: string): URL {
  const source = `
    import { parentPort, workerData } from "node:worker_threads";
    let runs = 0;
    const on = parentPort.on.bind(parentPort);
    parentPort.on = (event, listener) =>
      on(event, (message) => {
        if (message.kind === "run") runs++;
        listener(message);
      });
    const misbehave = () => { ${misdeeds[misdeed]} };
    ${hook}
    await import(${JSON.stringify(new URL("../../../dist/backends/cpu/threads/worker.js", import.meta.url).href)});
  `;
  return new URL(`data:text/javascript,${encodeURIComponent(source)}`);
}

/** In calls of WebAssembly functions, where the condition holds. */
const inCalls = (condition: string): string => `
  const { Instance } = WebAssembly;
  const spoilt = (run) => (...values) => {
    if (${condition}) misbehave();
    return run(...values);
  };
  WebAssembly.Instance = function (module, imports) {
    const { exports } = new Instance(module, imports);
    return { exports: Object.fromEntries(Object.entries(exports).map(([name, run]) => [name, spoilt(run)])) };
  };
`;

/** In the second run, in every kernel. */
const inKernels = inCalls("runs === 2");
/** From the second run on, in every copy that is part of another worker's work. */
const inParts = inCalls(String.raw`runs > 1 && /\bhelp\b/.test(new Error().stack)`);

const elements = 2 ** 16;

/** Each rank doubles its input. */
const doubling = link(
  buildLists(2, (list) => {
    const own = list.input([elements]);
    list.statement("T1 = add(T0, T0)").binary(0, "add", own, own, list.output([elements]));
  }),
);

/** One copy that is large enough to be done in parts. */
const copying = link(
  buildLists(1, (list) => {
    list.statement("T1 = Set(T0)").copy(0, list.input([64 * elements]), list.output([64 * elements]));
  }),
);

function fill(program: Program, prepared: Prepared): void {
  for (const { id, role, bytes } of program.buffers) {
    if (role !== "input") continue;
    prepared.write(id, new Uint8Array(Float32Array.from({ length: bytes / 4 }, (_, i) => (i % 97) + id).buffer));
  }
}

function expectResult(program: Program, prepared: Prepared, factor: number): void {
  for (const { rank, role, id } of program.buffers) {
    if (role !== "output") continue;
    const input = program.buffers.find((buffer) => buffer.rank === rank && buffer.role === "input");
    const values = new Float32Array(prepared.read(input?.id ?? id).buffer).map((value) => factor * value);
    expect(Buffer.from(prepared.read(id)).equals(Buffer.from(values.buffer))).toBe(true);
  }
}

async function diagnosticOf(run: Promise<unknown>): Promise<DiagnosticError["diagnostics"][number] | null> {
  try {
    await run;
    return null;
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return error.diagnostics[0] ?? null;
  }
}

async function withGroup(worker: URL, use: (group: Group) => Promise<void>): Promise<void> {
  const group = openThreadedGroup({ workers: 2, worker });
  try {
    await use(group);
  } finally {
    await group.close();
  }
}

const launched = /^rank [01], stream 0, command 0 \(launch\) of: T1 = add\(T0, T0\)/u;

describe("inside a kernel", () => {
  it.each([
    ["throws", "command-threw", /broken on purpose/u],
    ["dies", "worker-died", /^worker [01] exited with status 9$/u],
  ] as const)("a worker that %s", async (misdeed, code, found) => {
    await withGroup(workerWith(misdeed, inKernels), async (group) => {
      const prepared = await group.prepare(doubling);
      fill(doubling, prepared);
      await prepared.execute({ timeout: 10 });
      const diagnostic = await diagnosticOf(prepared.execute({ timeout: 10 }));
      expect(diagnostic?.code).toBe(code);
      expect(diagnostic?.found).toMatch(found);
      expect(diagnostic?.place).toEqual({ kind: "statement", text: expect.stringMatching(launched) as string });
      await prepared.execute({ timeout: 10 });
      expectResult(doubling, prepared, 2);
    });
  });

  it("a worker that never returns", async () => {
    await withGroup(workerWith("never returns", inKernels), async (group) => {
      const prepared = await group.prepare(doubling);
      fill(doubling, prepared);
      await prepared.execute({ timeout: 10 });
      const diagnostic = await diagnosticOf(prepared.execute({ timeout: 0.2 }));
      expect(diagnostic?.code).toBe("timed-out");
      // The last note names the folder of flight records.
      const notes = diagnostic?.notes?.slice(0, -1) ?? [];
      expect(notes).toHaveLength(2);
      for (const note of notes) {
        expect(note).toMatch(launched);
        expect(note).toMatch(/: running or ready$/u);
      }
      await prepared.execute({ timeout: 10 });
      expectResult(doubling, prepared, 2);
    });
  });
});

describe("inside a part of another worker's copy", () => {
  it.each([
    ["throws", "command-threw", /broken on purpose/u],
    ["dies", "worker-died", /^worker [01] exited with status 9$/u],
  ] as const)("a worker that %s", async (misdeed, code, found) => {
    await withGroup(workerWith(misdeed, inParts), async (group) => {
      const prepared = await group.prepare(copying);
      fill(copying, prepared);
      // Until the second worker comes in time to take a part.
      let diagnostic = null;
      for (let run = 0; run < 500 && diagnostic === null; run++) {
        diagnostic = await diagnosticOf(prepared.execute({ timeout: 10 }));
      }
      expect(diagnostic?.code).toBe(code);
      expect(diagnostic?.found).toMatch(found);
      expect(diagnostic?.place).toEqual({
        kind: "statement",
        text: "rank 0, stream 0, command 0 (copy) of: T1 = Set(T0)",
      });
      // The same workers or new ones; where a part fails again, at once.
      for (let run = 0; run < 500; run++) {
        if ((await diagnosticOf(prepared.execute({ timeout: 10 }))) !== null) continue;
        expectResult(copying, prepared, 1);
        return;
      }
      expect.unreachable("some run is done by one worker alone");
    });
  });
});
