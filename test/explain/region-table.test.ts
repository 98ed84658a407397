import { DeviceMesh, explain, Fusion, linear, set } from "@braid-compiler/braid";
import { expect, it } from "vitest";
import { countedText } from "../../src/explain/layers.ts";
import { type RegionRow, regionTable, regionText } from "../../src/explain/region-rows.ts";
import { explainReport } from "../../src/report/build/explain-report.ts";
import { chromeTrace } from "../../src/trace/chrome/chrome-trace.ts";
import { renderTimeline } from "../../src/trace/timeline.ts";
import { machine, perMegabyte, transfersAt } from "./machine.ts";

const row: RegionRow = {
  region: 0,
  statement: "for i5 in range(4)",
  isLoop: true,
  chunks: 4,
  streams: 2,
  gemms: 1.5,
  load: { link: 0.25, kernels: 1.5 },
  sent: 0,
  received: 2048,
  transferred: 0,
  communication: 0.25,
  hidden: 0.5,
  exposed: 0.125,
};

it("has a column for each cell, and for bytes only where a region has them", () => {
  const moved = regionTable([row, { ...row, received: 0 }]);
  expect(moved.columns).toEqual(["chunks", "streams", "GEMMs", "received", "communication", "hidden", "exposed"]);
  expect(moved.cellsOf(row)).toHaveLength(moved.columns.length);
  const still = regionTable([{ ...row, received: 0 }]);
  expect(still.columns).not.toContain("received");
  expect(still.cellsOf({ ...row, received: 0 })).toHaveLength(still.columns.length);
});

it("says no loop and leaves hidden empty where there is none", () => {
  const alone = { ...row, isLoop: false, hidden: null };
  const { columns, cellsOf } = regionTable([alone]);
  const cells = Object.fromEntries(columns.map((column, i) => [column, cellsOf(alone)[i]]));
  expect(cells).toMatchObject({ chunks: "no loop", hidden: "" });
});

it.each([
  { along: "DIDx", parts: 4, transferred: [512], milliseconds: 5.12 },
  { along: "DIDy", parts: 1, transferred: [], milliseconds: 0.000512 },
] as const)("counts $transferred bytes along $along of $parts", ({ along, parts, transferred, milliseconds }) => {
  const f = new Fusion();
  const x = f.input([8, 16]);
  const y = set(x);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(new DeviceMesh([[0, 1, 2, 3]]));
  x.outerSplit(0, parts).parallelize(along);
  const slow = { localCopies: perMegabyte(1e3), transfers: transfersAt(perMegabyte(1e7)) };
  // Otherwise nothing moves along a mesh dimension of one device.
  const options = { devices: 4, schedule: "as-written", nvfuserLimits: parts === 1 } as const;
  const explanation = explain(f, options, machine(slow));
  const { run } = explanation;
  expect(run.regions.map((each) => each.transferred)).toEqual(transferred);
  // Of a team of one device, the library copies.
  expect(run.milliseconds).toBeCloseTo(milliseconds, 9);
  expect(run.floor.communication).toBe(parts === 1 ? 0 : milliseconds);
  // Every picture of the run draws it as one.
  const { program } = explanation.compilation;
  const { trace } = run;
  const [row0 = ""] = renderTimeline(program, 0, trace, { columns: 40, on: "cuda" });
  expect(/[ct](?=[.ct]* )/u.exec(row0.slice(row0.indexOf(")")))?.[0]).toBe(parts === 1 ? "c" : "t");
  const kinds = new Set(JSON.stringify(chromeTrace(program, trace)).match(/"cat":"(?:copy|transfer)"/gu));
  expect([...kinds]).toEqual([`"cat":"${parts === 1 ? "copy" : "transfer"}"`]);
  const [view] = explainReport({ title: "", machine: "", explanation }).views;
  expect(view?.timeline.works.map(({ kind }) => kind)).toContain(parts === 1 ? "localCopy" : "transfer");
});

it("names a region by its communication, and its tensors as the user does", () => {
  const f = new Fusion();
  const x = f.input([8, 16]).named("x");
  const y = set(x).named("whole");
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(4));
  x.outerSplit(0, 4).parallelize("DIDx");
  const { run, named } = explain(f, { devices: 4, schedule: "as-written" }, machine({}));
  expect(run.regions.map((each) => regionText(each, named))).toEqual(["whole = Allgather(x)"]);
  const linear = "T5_g_float[iS1{4}] = linear(T0_g_float[iS2{4}],\n  T1_g_float[iS3{4}]  )";
  expect(regionText({ ...row, statement: linear }, named)).toBe("T5 = linear(x, whole)");
});

it("names a region in which only the peers have commands, and says so", () => {
  const f = new Fusion();
  const [x, w] = [f.input([4096, 4096], "bfloat16").named("x"), f.input([4096, 4096], "bfloat16").named("w")];
  const moved = set(w).named("moved");
  // The rank that ends last gets the weight, which its owner puts there.
  f.output(linear(x, moved));
  const [first, second] = [new DeviceMesh([0]), new DeviceMesh([1])];
  w.setDeviceMesh(first);
  for (const tensor of [x, moved]) tensor.setDeviceMesh(second);
  const options = { devices: 2, on: "cuda", backend: "cuda", protocol: "put", schedule: "as-written" } as const;
  const { run, named } = explain(f, options, machine({ transfers: transfersAt(perMegabyte(1)) }));
  expect(run.rank).toBe(1);
  expect(run.regions.map((each) => [regionText(each, named), each.streams])).toEqual([["moved = SendRecv(w)", 0]]);
  const { columns, cellsOf } = regionTable(run.regions);
  expect(run.regions.map((each) => cellsOf(each)[columns.indexOf("streams")])).toEqual(["peers'"]);
});

it("names a chunk that is sent, and both of two equal regions", () => {
  const sent = "P2PCommunication 5 (type=send, buffer=T15_g_float[iS33{4}] (DeviceMesh{0 1}), peer=1, backend=CUDA)";
  expect(regionText({ ...row, statement: sent }, (text) => text.replace("T15", "z"))).toBe("send(z)");
  const texts = ["w2.grad = Allreduce(T5)", "w1.grad = Allreduce(T7)"];
  expect([1, 2, 80].map((count) => countedText(count, texts))).toEqual([
    "w2.grad = Allreduce(T5)",
    "2 x w2.grad/w1.grad = Allreduce(T5)",
    "80 x w2.grad = Allreduce(T5)",
  ]);
});
