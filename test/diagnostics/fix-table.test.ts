/**
 * Every diagnostic code: a smallest program that raises it and the same with the fix typed, which no longer does; or the
 * tests that type its fixes; or one word for a fix that is no edit of a program or call.
 */
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  add,
  compile,
  DeviceMesh,
  type Diagnostic,
  type DiagnosticCode,
  DiagnosticError,
  diagnosticCodes,
  Fusion,
  gradients,
  HostProgramBuilder,
  lower,
  matmul,
  parse,
  print,
  record,
  relu,
  select,
  sum,
  type TensorView,
} from "braid";
import { badAnnotations } from "../passes/bad-annotations.ts";
import { checked, convertOpToCommunication, streamParallelType } from "../passes/refused-programs.ts";
import { keysOf } from "../../src/support/keys-of.ts";

interface Typed {
  readonly kind: "typed";
  /** What the fix says. */
  readonly help: RegExp;
  /** Throws the diagnostic; with `isFixed`, as the fix says, nothing. */
  readonly program: (isFixed: boolean) => unknown;
}

type Row =
  | Typed
  /** Rows of test/passes/bad-annotations.ts or refused-programs.ts type its fixes. */
  | { readonly kind: "annotations" }
  /** A finding, of which test/fixtures/findings has an example; counterexamples.test.ts repairs missing orders. */
  | { readonly kind: "repairs" }
  /** test/cli/typed-fixes.long.test.ts types its fixes. */
  | { readonly kind: "command line" }
  /** The fix is made where the word says, not in a program. */
  | { readonly kind: "untyped"; readonly word: string };

const annotations = { kind: "annotations" } as const;
const repairs = { kind: "repairs" } as const;
const commandLine = { kind: "command line" } as const;
const untyped = (word: string): Row => ({ kind: "untyped", word });
const typed = (help: RegExp, program: Typed["program"]): Row => ({ kind: "typed", help, program });

const two = DeviceMesh.range(2);

function lowered(build: (f: Fusion) => TensorView): void {
  const f = new Fusion();
  f.output(build(f));
  lower(f);
}

function recorded(build: (h: HostProgramBuilder, x: TensorView) => void): void {
  const h = new HostProgramBuilder();
  build(h, h.input([4], { mesh: two, dtype: "float" }));
  record(h.build(), { rank: 0 });
}

function symbolic(sizes: Readonly<Record<string, number>>): void {
  const f = new Fusion();
  f.output(add(f.input([null]), f.input([null])));
  compile(f, { devices: 1, sizes });
}

/** The same host program on each of two ranks. */
function onTwo(mesh: DeviceMesh, devices: number): void {
  const f = new Fusion();
  const x = f.input([4]);
  x.setDeviceMesh(mesh);
  f.output(relu(x));
  compile([lower(f), lower(f)], { devices });
}

/** Options as of JavaScript, where no types refuse them. */
function compiled(options: string): void {
  const f = new Fusion();
  f.output(relu(f.input([4])));
  compile(f, { devices: 1, ...(JSON.parse(options) as object) });
}

function dumped(edit: (dump: string) => string): void {
  const f = new Fusion();
  f.output(relu(f.input([4])));
  parse(edit(print(lower(f))));
}

const table: { readonly [C in DiagnosticCode]: Row } = {
  "axis-out-of-range": annotations,
  "axis-repeated": annotations,
  "shape-mismatch": annotations,
  "dtype-mismatch": typed(/./u, (isFixed) =>
    lowered((f) => matmul(f.input([4, 4]), f.input([4, 4], isFixed ? "float" : "half"))),
  ),
  "bad-extent": annotations,
  "bad-argument": annotations,
  "foreign-tensor": typed(/input of this Fusion/u, (isFixed) =>
    lowered((f) => add(f.input([4]), (isFixed ? f : new Fusion()).input([4]))),
  ),
  "mesh-duplicate-device": annotations,
  "mesh-bad-device": annotations,
  "mesh-not-rectangular": annotations,
  "mesh-bad-name": annotations,
  "mesh-axis-missing": annotations,
  "mesh-missing": annotations,
  "mesh-too-large": annotations,
  "did-repeated": annotations,
  "stream-repeated": annotations,
  "size-contradicts-mesh": annotations,
  "not-differentiable": typed(/./u, (isFixed) => {
    const f = new Fusion();
    const [x, n] = [f.input([4]), f.input([4], "int64")];
    const loss = sum(x, [0]);
    f.output(loss);
    gradients(f, { of: [loss], wrt: [isFixed ? x : n] });
  }),
  "no-output": typed(/fusion\.output\(tv\)/u, (isFixed) => {
    const f = new Fusion();
    const x = relu(f.input([4]));
    if (isFixed) f.output(x);
    lower(f);
  }),
  "resharding-unsupported": annotations,
  "annotations-conflict": annotations,
  "indexed-axis-gathered": annotations,
  "stream-on-input": annotations,
  "stream-on-split-axis": annotations,
  "stream-on-reduction-axis": annotations,
  "stream-on-matmul-axis": annotations,
  "stream-on-cut-axis": annotations,
  "stream-on-host-unit": annotations,
  "did-on-merged-axis": annotations,
  "point-to-point-unsupported": annotations,
  "bad-option": annotations,
  "host-program-invalid": untyped("statements"),
  "pass-validation": untyped("passes"),
  "kernel-opaque": untyped("kernels"),
  "dump-syntax": typed(/./u, (isFixed) => dumped((dump) => (isFixed ? dump : dump.replace(" -> (", " -> ")))),
  "dump-unsupported": untyped("nvFuser"),
  "dump-incomplete": untyped("dumps"),
  "dump-contradiction": untyped("dumps"),
  "dump-container": typed(/./u, (isFixed) => dumped((dump) => (isFixed ? dump : "T0"))),
  "size-missing": typed(/give i2 a size/u, (isFixed) => symbolic(isFixed ? { i0: 4, i2: 4 } : { i0: 4 })),
  "size-unknown": commandLine,
  "size-mismatch": typed(/./u, (isFixed) => symbolic({ i0: 4, i2: isFixed ? 4 : 6 })),
  "scalar-missing": untyped("scalars"),
  "scalar-invalid": untyped("scalars"),
  "allocation-on-split-axis": untyped("dumps"),
  "index-out-of-range": typed(/choose an index inside the axis/u, (isFixed) =>
    lowered((f) => select(f.input([4, 2]), 0, isFixed ? 3 : 4)),
  ),
  "not-posted": untyped("statements"),
  "not-shared": untyped("statements"),
  "already-waited": typed(/remove the second Wait/u, (isFixed) =>
    recorded((h, x) => {
      const posted = h.send(x, { peer: 1 });
      h.wait(posted);
      if (!isFixed) h.wait(posted);
    }),
  ),
  "not-bound": typed(/add the rank to the mesh/u, (isFixed) => onTwo(isFixed ? two : DeviceMesh.range(1), 2)),
  "recording-too-long": untyped("loops"),
  "bad-peer": typed(/expression of the peer/u, (isFixed) =>
    recorded((h, x) => {
      h.wait(h.recv(x, { peer: isFixed ? 1 : h.scalars.sub(h.scalars.rank, 1) }));
    }),
  ),
  "transfer-mismatch": repairs,
  "transfer-unclear": repairs,
  "rank-missing": untyped("lists"),
  "memory-limit": untyped("sizes"),
  "program-malformed": untyped("Programs"),
  "data-race": repairs,
  "transfer-not-waited": repairs,
  "unwritten-read": repairs,
  deadlock: repairs,
  "needs-concurrency": repairs,
  "signal-unbalanced": repairs,
  "event-not-recorded": repairs,
  "event-recorded-twice": repairs,
  "used-before-alloc": repairs,
  "used-after-free": repairs,
  "freed-in-use": repairs,
  "freed-twice": repairs,
  "allocated-twice": repairs,
  "memory-shared": repairs,
  "outside-buffer": repairs,
  "operands-overlap": repairs,
  "redundant-synchronization": repairs,
  "iterations-serialized": repairs,
  "buffer-leaked": repairs,
  "input-count": untyped("arguments"),
  "input-shape": untyped("arguments"),
  "device-count": typed(/./u, (isFixed) => onTwo(two, isFixed ? 2 : 3)),
  "host-programs-differ": untyped("ranks"),
  "profile-invalid": untyped("files"),
  "trace-invalid": untyped("files"),
  "trace-mismatch": untyped("files"),
  "file-unreadable": untyped("files"),
  "plan-unsupported": untyped("plans"),
  "plan-unverified": untyped("plans"),
  "plan-version": untyped("plans"),
  "plan-invalid": untyped("plans"),
  "plan-mismatch": untyped("plans"),
  "tensor-file-invalid": untyped("files"),
  "file-unwritable": untyped("files"),
  "program-invalid": untyped("files"),
  "program-threw": untyped("files"),
  "option-unknown": typed(/did you mean streams/u, (isFixed) => compiled(isFixed ? '{"streams":2}' : '{"stream":2}')),
  "option-value": commandLine,
  "backend-unavailable": untyped("machine"),
  "interleaving-invalid": untyped("interleavings"),
  stuck: untyped("runs"),
  "slot-overrun": repairs,
  "command-threw": untyped("runs"),
  "worker-died": untyped("runs"),
  "gpu-call-failed": untyped("machine"),
  "gpu-memory": untyped("machine"),
  "gpu-unsupported": untyped("machine"),
  "rank-failed": untyped("runs"),
  interrupted: untyped("runs"),
  "rank-behind": untyped("runs"),
  "rendezvous-failed": untyped("network"),
  "launcher-environment": untyped("environment"),
  "program-differs": untyped("ranks"),
  "timed-out": untyped("runs"),
  "check-failed": untyped("values"),
  "not-checked": untyped("values"),
};

function raised(program: () => unknown): readonly Diagnostic[] {
  try {
    program();
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics;
    throw error;
  }
  return [];
}

describe("fixes by code", () => {
  const rows = keysOf(diagnosticCodes).map((code) => ({ code, row: table[code] }));

  it.each(rows.flatMap(({ code, row }) => (row.kind === "typed" ? [{ code, ...row }] : [])))(
    "$code, typed, is gone",
    ({ code, help, program }) => {
      const [diagnostic] = raised(() => program(false));
      expect([diagnostic?.code, diagnostic?.help]).toEqual([code, expect.stringMatching(help)]);
      expect(raised(() => program(true))).toEqual([]);
    },
  );

  it("has rows of the other tables for those that it leaves to them", () => {
    const refused = [...checked, ...convertOpToCommunication, ...streamParallelType];
    const elsewhere: readonly string[] = [...badAnnotations, ...refused].map(({ code }) => code);
    const left = rows.flatMap(({ code, row }) =>
      row.kind === "annotations" && !elsewhere.includes(code) ? [code] : [],
    );
    expect(left).toEqual([]);
  });
  it("has an example of each finding", () => {
    const examples = new Set(
      readdirSync(new URL("../fixtures/findings", import.meta.url)).map((name) => name.replace(/\.\w+$/u, "")),
    );
    expect(rows.flatMap(({ code, row }) => (row.kind === "repairs" && !examples.has(code) ? [code] : []))).toEqual([]);
  });
});
