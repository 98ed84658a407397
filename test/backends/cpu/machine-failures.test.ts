/**
 * The CPU back end on the calling thread: a command that throws and a run that times out name the command, and the next
 * run works.
 */
import { afterAll, describe, expect, it } from "vitest";
import { DiagnosticError, type Diagnostic, link, type Prepared } from "@braid-compiler/braid";
import { openMachineGroup } from "../../../src/backends/cpu/machine-group.ts";
import { buildLists } from "../../machine/list-builder.ts";

/** Rank 1 copies on a worker after rank 0 has sent it something: 64 floats, long enough to be moved by an instruction. */
const program = link(
  buildLists(2, (list, rank) => {
    const own = list.input([64]);
    const got = list.output([64]);
    list.group(0, [rank === 0 ? { type: "send", peer: 1, view: own } : { type: "recv", peer: 0, view: got }]);
    if (rank !== 1) return;
    const worker = list.stream("worker 0");
    list.synchronize(worker, 0);
    list.statement("T2 = Set(T1)").copy(worker, got, list.output([64]));
    list.synchronize(0, worker);
  }),
);

async function failureOf(run: Promise<unknown>): Promise<Diagnostic | undefined> {
  const error: unknown = await run.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof DiagnosticError)) throw new Error(`expected a diagnostic, not ${String(error)}`);
  return error.diagnostics[0];
}

const place = { kind: "statement", text: "rank 1, stream 1, command 3 (copy) of: T2 = Set(T1)" };

async function prepared(): Promise<Prepared> {
  const group = await openMachineGroup({}).prepare(program);
  const bytes = new Uint8Array(Float32Array.from({ length: 64 }, (_, i) => i).buffer);
  for (const { id, role } of program.buffers) if (role === "input") group.write(id, bytes);
  return group;
}

function lastOutput(run: Prepared): number | undefined {
  const buffer = program.buffers.findLast(({ role }) => role === "output");
  return buffer === undefined ? undefined : new Float32Array(run.read(buffer.id).buffer)[63];
}

type Exports = Readonly<Record<string, (...values: readonly number[]) => void>>;
const { WebAssembly: api } = globalThis as unknown as {
  readonly WebAssembly: { Instance: new (module: object, imports: object) => { readonly exports: Exports } };
};
const { Instance } = api;
let beforeCopy = (): void => {};

/** Programs that are prepared from here on call `beforeCopy` before each of their copies. */
api.Instance = class {
  readonly exports: Exports;
  constructor(module: object, imports: object) {
    const { exports } = new Instance(module, imports);
    const { move } = exports;
    const spied: Exports = {
      move: (...range) => {
        beforeCopy();
        move?.(...range);
      },
    };
    this.exports = move === undefined ? exports : spied;
  }
};
afterAll(() => {
  api.Instance = Instance;
});

describe("on the machine", () => {
  it("a command that throws", async () => {
    const run = await prepared();
    let calls = 0;
    beforeCopy = () => {
      if (++calls === 2) throw new Error("broken on purpose");
    };
    const diagnostic = await failureOf(run.execute());
    beforeCopy = () => {};
    expect(diagnostic).toMatchObject({ code: "command-threw", found: "Error: broken on purpose", place });
    await run.execute();
    expect(lastOutput(run)).toBe(63);
  });

  it("a run that takes too long", async () => {
    const run = await prepared();
    beforeCopy = () => {
      const end = performance.now() + 30;
      while (performance.now() < end);
    };
    const diagnostic = await failureOf(run.execute({ timeout: 0.02 }));
    beforeCopy = () => {};
    expect(diagnostic).toMatchObject({ code: "timed-out", message: "the run did not end within 20 ms" });
    // What would have started next, once the time was up.
    const text = /^rank \d, stream \d, command \d \((recordEvent|waitEvent|copy)\) of: /u;
    expect(diagnostic?.place).toEqual({ kind: "statement", text: expect.stringMatching(text) as string });
    await run.execute({ timeout: 5 });
    expect(lastOutput(run)).toBe(63);
  });
});
