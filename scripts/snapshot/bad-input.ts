/** Command lines, files and calls with one mistake each. */

const example = "examples/nvfuser/allgather-matmul.ts";
const p2p = "examples/nvfuser/matmul-reduce-scatter-p2p.ts";

/** Files that are written into SCRATCH for the command lines. */
export const badFiles: Readonly<Record<string, string>> = {
  "empty.ts": "",
  "number.ts": "export default 3;",
  "named.ts": "export const program = 3;",
  "fusion.ts": `import { Fusion } from "@braid-compiler/braid";\nexport default new Fusion();`,
  "throws.ts": `throw new Error("no");`,
  "throws-inside.ts": `import { program } from "@braid-compiler/braid";\nexport default program({}, () => {\n  throw new TypeError("no");\n});`,
  "syntax.ts": "export default (;",
  "absent-import.ts": `import { x } from "./absent.ts";\nexport default x;`,
  "misspelt.ts": `import { program, Fusoin } from "@braid-compiler/braid";\nexport default program({}, () => new Fusoin());`,
  "nothing.ts": `import { program } from "@braid-compiler/braid";\nexport default program({}, () => undefined);`,
  "forever.ts": `await new Promise(() => {});\nexport default 1;`,
  "no-output.ts": `import { Fusion, program } from "@braid-compiler/braid";\nexport default program({}, () => { const f = new Fusion(); f.input([2]); return f; });`,
  "bad-default.ts": `import { Fusion, program } from "@braid-compiler/braid";\nexport default program({ M: "x" }, () => new Fusion());`,
  "four.ts": `import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";
export default program({}, () => {
  const f = new Fusion();
  const a = f.input([4], "float");
  const b = set(a);
  f.output(b);
  for (const tv of [a, b]) tv.setDeviceMesh(DeviceMesh.range(4));
  return f;
});`,
  "symbolic.ts": `import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";
export default program({}, ({ devices }) => {
  const f = new Fusion();
  const a = f.input([devices, null, null], "float");
  const b = set(a);
  f.output(b);
  for (const tv of [a, b]) tv.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  return f;
});`,
  "racing.ts": `import { HostProgramBuilder, program } from "@braid-compiler/braid";
export default program({}, () => {
  const h = new HostProgramBuilder();
  const x = h.input([4, 8]);
  const [y, z] = [h.tensor([4, 8]), h.tensor([4, 8])];
  h.output(z);
  h.allocate(y);
  h.allocate(z);
  h.setCurrentStream(h.stream(0));
  h.add(x, x, { out: y });
  h.setCurrentStream(h.stream(1));
  h.add(y, y, { out: z });
  return h.build();
});`,
  "notes.md": "",
  noextension: "",
  "text.hir": "nothing of a dump",
  "empty.hir": "",
  "order.txt": "0:0\n9:9\n",
  "words.txt": "first the caller\n",
  "profile.json": "{}",
  "version.json": `{ "version": 2 }`,
  "text.json": "no JSON",
  "list.json": "[]",
  "config.json": `{ "benchmark": { "primitive": "tp_rowwise", "m": 0 } }`,
  "entry.json": `{ "benchmark": { "primitve": "tp_rowwise" } }`,
  "impl.json": `{ "benchmark": { "primitive": "tp_rowwise", "m": 32, "n": 8, "k": 16, "implementations": { "braid": [{ "form": "square" }] } } }`,
};

const anywhere = [
  "",
  "--bogus",
  "--devcies 8",
  "--devices 0",
  "--devices -1",
  "--devices 2.5",
  "--devices many",
  "--devices EMPTY",
  "--devices",
  "--set",
  "--set M",
  "--set M=",
  "--set Q=3",
  "--set m=3",
  "--set M=100",
  "--set S=0",
  "--set M=1 --set M=2",
  "--backend mpi",
  "--schedule p2p=x",
  "--schedule protocol=x",
  "--schedule protocol=put",
  "--backend cuda --schedule p2p=linear",
  "--entry 0",
  "--entry x",
  "--as nvfuser",
  "--as sometimes",
  "--schedule streams=0",
  "--size i0=8",
  "--size i0",
  "--copy-lane both",
  "--schedule splitChunks=0",
  "--merge-products 1-x",
  "--merge-products 0",
  "--schedule computeStreams=none",
  "--schedule smMargin=0",
];

const files = [
  ...Object.keys(badFiles).filter((name) => !/racing|\.json$|symbolic/.test(name)),
  "absent.ts",
  "absent.hir",
  "EMPTY",
].map((name) => (name === "EMPTY" ? "SCRATCH" : `SCRATCH/${name}`));

/** Words are split at spaces. EMPTY is the empty word, SCRATCH the folder of `badFiles`. */
export const badCommandLines: readonly string[] = [
  "--version",
  "lwoer x.ts",
  "prove x.ts",
  "help",
  "help lower",
  "doctor --yaml",
  "doctor x",
  ...anywhere
    .filter((text) => text !== "")
    .flatMap((text) => ["lower", "verify"].map((name) => `${name} ${example} ${text}`)),
  ...["lower", "run", "verify"].flatMap((name) => [name, `${name} a.ts b.ts`]),
  ...files.flatMap((file) => [`lower ${file} --devices 2`, `verify ${file} --devices 2`]),
  ...["number.ts", "braid.ts", "four.ts", "text.hir", "racing.ts"].map(
    (name) => `run SCRATCH/${name} --devices 2 --blas off`,
  ),
  ...[
    "--rank",
    "--rank 8",
    "--rank -1",
    "--rank 3 --devices 2",
    "--as braid:1999",
    "--print passes=inline",
    "--report x",
  ].map((text) => `lower ${example} ${text}`),
  `lower test/fixtures/dumps/e2-allgather.hir --print passes=deallocate`,
  `lower test/fixtures/dumps/e2-allgather.hir --backend cuda`,
  `lower test/fixtures/dumps/e2-allgather.hir --devices 3`,
  `lower test/fixtures/dumps/e2-allgather.hir --set M=3`,
  `verify test/fixtures/dumps/e2-allgather.hir --entry 7`,
  `lower ${p2p} --schedule accumulate,overlap=false`,
  `verify SCRATCH/symbolic.ts`,
  `verify SCRATCH/symbolic.ts --size i2=8`,
  `verify SCRATCH/symbolic.ts --size i9=8`,
  `verify SCRATCH/symbolic.ts --size i2=0`,
  `verify SCRATCH/symbolic.ts --size i2=8 --size i2=9`,
  `verify SCRATCH/racing.ts --devices 1`,
  `verify SCRATCH/racing.ts --devices 1 --json`,
  `verify SCRATCH/racing.ts --devices 1 --report SCRATCH/no/x.html`,
  `verify SCRATCH/racing.ts --devices 1 --interleaving SCRATCH/no/x.txt`,
  ...[
    "--on tpu",
    "--on cuda",
    "--timeout 0",
    "--timeout soon",
    "--repeat 0",
    "--seed x",
    "--interleaving seed:x",
    "--interleaving hold:1",
    "--interleaving hold:9:1",
    "--interleaving absent.txt",
    "--interleaving SCRATCH/order.txt",
    "--interleaving SCRATCH/words.txt",
    "--verify maybe",
    "--blas on",
    "--graph maybe",
    "--graph on",
    "--schedule smMargin=8",
    "--schedule best",
    "--schedule auto",
    "--profile SCRATCH/profile.json",
    "--schedule auto --profile absent.json",
    "--schedule auto --profile 5xH200",
    "--schedule auto --profile SCRATCH/profile.json",
    "--schedule auto --profile SCRATCH/version.json",
    "--schedule auto --profile SCRATCH/text.json",
    "--schedule auto --profile 4xH200 --schedule inPlace",
    "--schedule auto,streams=2 --profile 4xH200",
    "--schedule auto,p2p=linear --profile 4xH200 --backend ucc",
    "--trace SCRATCH/no/trace.json",
    "--set M=6400000000",
  ].map((text) => `run ${example} --devices 2 --blas off ${text}`),
  "calibrate --on tpu",
  "calibrate --devices 1",
  "calibrate --out SCRATCH/no/profile.json",
  "calibrate x",
  "bench",
  "bench tp-column",
  ...[
    "--set m=0",
    "--set m=64,x",
    "--set size=64x64",
    "--set size=0x1x1",
    "--set dtype=int",
    "--impl brade",
    "--impl braid;",
    "--impl braid;form",
    "--impl braid;form=square",
    "--impl braid;from=rotated",
    "--impl braid;form=rotated;form=linear",
    "--impl braid;chunks=0",
    "--impl braid;copyStream=both",
    "--impl serial;chunks=2",
    "--impl torch-nccl;graph=on",
    "--impl braid;scheduleChoice=auto",
    "--impl braid;scheduleChoice=auto;streams=2 --profile 4xH200",
    "--impl braid;form=rotated;chunks=2",
    "--impl braid;form=collective;outputs=2",
    "--devices 1",
    "--out x.png",
    "--repeat 0",
    "--on tpu",
    "--profile absent.json",
    "--config SCRATCH/absent.json",
    "--config SCRATCH/text.json",
    "--config SCRATCH/list.json",
    "--config SCRATCH/config.json",
    "--config SCRATCH/entry.json",
    "--config SCRATCH/impl.json",
    "--set m=7,n=5,k=3 --impl serial",
  ].map((text) => `bench tp-columnwise ${text}`),
];

const lowered = (options: string): string => `f.output(braid.set(a)); braid.lower(f, ${options});`;
const created = (options: string): string => `f.output(braid.set(a)); await MultiDeviceExecutor.create(f, ${options});`;
const built = (body: string): string =>
  `const h = new HostProgramBuilder(); const x = h.input([4, 8]); const y = h.tensor([4, 8]); h.output(y); ${body}; h.build();`;
const ran = (body: string): string =>
  `f.output(braid.set(a)); const e = await MultiDeviceExecutor.create(f, { devices: 1 }); ${body}`;

/**
 * Function bodies with `braid`, the Fusion `f`, its inputs `a` [2, 4, 8] and `b` [8, 6], and a mesh of two devices in
 * scope.
 */
export const badCalls: readonly string[] = [
  ...[
    `{ rank: -1 }`,
    `{ rank: 1.5 }`,
    `{ communicatorBackend: "mpi" }`,
    `{ communicatorBackend: 3 }`,
    `{ pointToPoint: "ring" }`,
    `{ pointToPoint: "linear", communicatorBackend: "cuda" }`,
    `{ p2pProtocol: "get" }`,
    `{ overlap: "no" }`,
    `{ accumulate: 1 }`,
    `{ deallocate: null }`,
    `{ disablePasses: "segment" }`,
    `{ disablePasses: ["inline"] }`,
    `{ colour: "red" }`,
  ].map(lowered),
  ...[
    `{}`,
    `{ devices: 0 }`,
    `{ devices: 2, on: "tpu" }`,
    `{ devices: 2, streams: 0 }`,
    `{ devices: 2, timeout: -1 }`,
    `{ devices: 2, localRanks: [2] }`,
    `{ devices: 2, localRanks: [0.5] }`,
    `{ devices: 2, verify: "maybe" }`,
    `{ devices: 2, copyLane: "both" }`,
    `{ devices: 2, schedule: { splitChunks: 0 } }`,
    `{ devices: 2, schedule: { computeStreams: 1.5 } }`,
    `{ devices: 2, schedule: { smMargin: 0 } }`,
    `{ devices: 2, schedule: "best" }`,
    `{ devices: 2, schedule: "auto" }`,
    `{ devices: 2, colour: "red" }`,
  ].map(created),
  ...[
    `await e.run([]);`,
    `await e.run([Tensor.zeros([2]), Tensor.zeros([8, 6])]);`,
    `await e.run([Tensor.zeros([2, 4, 8], "half"), Tensor.zeros([8, 6])]);`,
    `await e.run([Tensor.zeros([2, 4, 8]), Tensor.zeros([8, 6])], { sizes: { i9: 3 } });`,
    `await e.run([Tensor.zeros([2, 4, 8]), Tensor.zeros([8, 6])], { outputs: [] });`,
    `e.hostProgram(1);`,
    `await e.close(); await e.run([]);`,
  ].map(ran),
  "f.input([0]);",
  "f.input([2.5]);",
  `f.input([2], "complex");`,
  "f.output(new Fusion().input([2]));",
  "f.output(a); braid.lower(new Fusion());",
  "braid.matmul(a, a);",
  "braid.matmul(a, f.input([8, 6], 'int'));",
  "braid.linear(a, b);",
  "braid.add(a, b);",
  "braid.sum(a, [3]);",
  "braid.sum(a, [0, 0]);",
  "braid.reshape(a, [3, 3]);",
  "braid.permute(a, [0, 1]);",
  "braid.slice(a, [0, 0, 0], [3, 4, 8]);",
  "braid.select(a, 0, 2);",
  "braid.squeeze(a, [0]);",
  "braid.broadcast(a, [true]);",
  "braid.cast(a, 'char');",
  "a.axis(3);",
  "a.axis(0).parallelize('DIDq');",
  "a.setDeviceMesh(mesh); a.axis(1).parallelize('DIDx'); a.axis(2).parallelize('DIDx'); f.output(a); braid.lower(f);",
  "a.setDeviceMesh(mesh); a.axis(1).parallelize('DIDx'); f.output(braid.set(a)); braid.lower(f);",
  "a.split(1, 3);",
  "a.split(9, 2);",
  "a.merge(2);",
  "new DeviceMesh([0, 0]);",
  "new DeviceMesh([]);",
  "new DeviceMesh([-1]);",
  "new DeviceMesh([[0, 1], [2]]);",
  "DeviceMesh.range(0);",
  "Tensor.zeros([-1]);",
  "Tensor.from?.([[1, 2], [3]]);",
  ...[
    "h.add(x, x, { out: h.tensor([3]) })",
    "h.wait(3)",
    "h.select(x, 0, 9)",
    "h.select(x, 2, 0)",
    "h.forLoop(0, () => {})",
    "h.endCoalescing()",
    "h.startCoalescing()",
    "h.startCoalescing(); h.startCoalescing()",
    "h.deallocate(x)",
    "h.send(x, { peer: -1 })",
    "h.setCurrentStream(3)",
    "h.stream(-1)",
    "h.communication('Gossip', { input: x, output: y })",
    "h.allocate(y); h.allocate(y)",
    "h.matmul(x, x, { out: y })",
  ].map(built),
  `braid.parse("");`,
  `braid.parse("%HostIrContainer { () -> () :\\n} // %HostIrContainer", { container: 2 });`,
  `braid.parseProfile("{}", "here");`,
  `braid.parseProfile("[", "here");`,
  `braid.link([]);`,
  `f.output(braid.set(a)); braid.record(braid.lower(f), { rank: 0, sizes: new Map(), numberOfStreams: 0 });`,
  `f.output(braid.set(f.input([null]))); braid.record(braid.lower(f), { rank: 0, sizes: new Map(), numberOfStreams: 1 });`,
];
