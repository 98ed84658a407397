/** Reading flight records: JSON, pickles of PyTorch and of Python, and files that are neither. */
import { describe, expect, it } from "vitest";
import { DiagnosticError, type Diagnostic } from "../../../src/diagnostics/diagnostic.ts";
import { readTorchRecord } from "../../../src/import/flight-records/torch-record.ts";
import { importModel } from "../../../src/import/import-model.ts";
import { flightRecords } from "../../../src/import/loader.ts";
import { documentOf, jsonBytes, pickleBytes, type WrittenEntry } from "./written-records.ts";

/** What Python's pickle.dumps writes of one record, by protocol. */
const ofPython = {
  2:
    "gAJ9cQAoWAcAAAB2ZXJzaW9ucQFYAwAAADIuN3ECWAkAAABwZ19jb25maWdxA31xBFgBAAAAMHEFfXEGKFgEAAAAbmFtZXEHaAVY" +
    "BAAAAGRlc2NxCFgKAAAAZGVmYXVsdF9wZ3EJWAUAAAByYW5rc3EKWAYAAABbMCwgMV1xC3VzWAcAAABlbnRyaWVzcQxdcQ19cQ4o" +
    "WAkAAAByZWNvcmRfaWRxD0sAWA0AAABwcm9jZXNzX2dyb3VwcRBoBWgJhnERWBEAAABjb2xsZWN0aXZlX3NlcV9pZHESSwFYCgAA" +
    "AHAycF9zZXFfaWRxE0sAWA4AAABwcm9maWxpbmdfbmFtZXEUWA8AAABuY2NsOmFsbF9yZWR1Y2VxFVgLAAAAaW5wdXRfc2l6ZXNx" +
    "Fl1xF11xGChLA00sAWVhWAwAAABpbnB1dF9kdHlwZXNxGV1xGlgIAAAAQkZsb2F0MTZxG2FYDAAAAG91dHB1dF9zaXplc3EcXXEd" +
    "XXEeKEsDTSwBZWFYDQAAAG91dHB1dF9kdHlwZXNxH11xIGgbYVgFAAAAc3RhdGVxIVgHAAAAc3RhcnRlZHEiWAcAAAByZXRpcmVk" +
    "cSOJWAoAAAB0aW1lb3V0X21zcSRKwCcJAFgGAAAAaXNfcDJwcSWJWAsAAABkdXJhdGlvbl9tc3EmRz/QAAAAAAAAWA8AAAB0aW1l" +
    "X2NyZWF0ZWRfbnNxJ4oIAEB3DoY9fBhYHAAAAHRpbWVfZGlzY292ZXJlZF9jb21wbGV0ZWRfbnNxKE5YBgAAAGZyYW1lc3EpXXEq" +
    "fXErKGgHWAYAAABwYXNfw6lxLFgIAAAAZmlsZW5hbWVxLVgIAAAAdHJhaW4ucHlxLlgEAAAAbGluZXEvSnARAQB1YXVhdS4=",
  4:
    "gASVBwIAAAAAAAB9lCiMB3ZlcnNpb26UjAMyLjeUjAlwZ19jb25maWeUfZSMATCUfZQojARuYW1llGgFjARkZXNjlIwKZGVmYXVs" +
    "dF9wZ5SMBXJhbmtzlIwGWzAsIDFdlHVzjAdlbnRyaWVzlF2UfZQojAlyZWNvcmRfaWSUSwCMDXByb2Nlc3NfZ3JvdXCUaAVoCYaU" +
    "jBFjb2xsZWN0aXZlX3NlcV9pZJRLAYwKcDJwX3NlcV9pZJRLAIwOcHJvZmlsaW5nX25hbWWUjA9uY2NsOmFsbF9yZWR1Y2WUjAtp" +
    "bnB1dF9zaXplc5RdlF2UKEsDTSwBZWGMDGlucHV0X2R0eXBlc5RdlIwIQkZsb2F0MTaUYYwMb3V0cHV0X3NpemVzlF2UXZQoSwNN" +
    "LAFlYYwNb3V0cHV0X2R0eXBlc5RdlGgbYYwFc3RhdGWUjAdzdGFydGVklIwHcmV0aXJlZJSJjAp0aW1lb3V0X21zlErAJwkAjAZp" +
    "c19wMnCUiYwLZHVyYXRpb25fbXOURz/QAAAAAAAAjA90aW1lX2NyZWF0ZWRfbnOUiggAQHcOhj18GIwcdGltZV9kaXNjb3ZlcmVk" +
    "X2NvbXBsZXRlZF9uc5ROjAZmcmFtZXOUXZR9lChoB4wGcGFzX8OplIwIZmlsZW5hbWWUjAh0cmFpbi5weZSMBGxpbmWUSnARAQB1" +
    "YXVhdS4=",
};

const base64 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "base64"));

const entries: readonly WrittenEntry[] = [
  { op: "all_reduce", line: 80 },
  ...Array.from({ length: 300 }, (_, i): WrittenEntry => ({
    op: "_all_gather_base",
    outputs: [[8, 4]],
    line: 1000 + i,
  })),
  { op: "send 0->1", inputs: [[2], []], state: "started", line: 90 },
];

function refused(bytes: Uint8Array, path = "fr_0.json"): Diagnostic {
  try {
    readTorchRecord(bytes, path);
  } catch (error) {
    if (error instanceof DiagnosticError && error.diagnostics[0] !== undefined) return error.diagnostics[0];
    throw error;
  }
  throw new Error("the record was read");
}

describe("a record", () => {
  it("is the same as JSON and as a pickle", () => {
    const document = documentOf(entries);
    const json = readTorchRecord(jsonBytes(document), "nccl_trace_rank_0");
    expect(readTorchRecord(pickleBytes(document), "nccl_trace_rank_0")).toEqual(json);
    expect(json.entries.length).toBe(302);
    expect(json.groups).toEqual(new Map([["0", { description: "default_pg", ranks: [0, 1] }]]));
    expect(json.entries.at(-1)).toMatchObject({
      op: "send",
      peers: { source: 0, destination: 1 },
      isPointToPoint: true,
      number: 1,
      inputs: [
        { dtype: "Float", sizes: [2] },
        { dtype: "Float", sizes: [] },
      ],
      state: "started",
      isRetired: false,
      timeoutMilliseconds: 600000,
    });
  });

  it.each([2, 4] as const)("is read as Python pickles it, protocol %i", (protocol) => {
    const record = readTorchRecord(base64(ofPython[protocol]), "trace_node07_12.pkl");
    expect(record).toEqual({
      path: "trace_node07_12.pkl",
      rank: 12,
      groups: new Map([["0", { description: "default_pg", ranks: [0, 1] }]]),
      entries: [
        {
          id: 0,
          group: "0",
          description: "default_pg",
          op: "all_reduce",
          peers: null,
          isPointToPoint: false,
          number: 1,
          inputs: [{ dtype: "BFloat16", sizes: [3, 300] }],
          outputs: [{ dtype: "BFloat16", sizes: [3, 300] }],
          state: "started",
          hasStart: true,
          isRetired: false,
          timeoutMilliseconds: 600000,
          frames: [{ name: "pas_\u00e9", file: "train.py", line: 70000 }],
        },
      ],
    });
  });

  it("without entries or frames is read", () => {
    const { entries: _, ...rest } = documentOf([]);
    expect(readTorchRecord(jsonBytes(rest), "fr_3.json")).toMatchObject({ rank: 3, entries: [] });
    const [first] = readTorchRecord(
      jsonBytes(documentOf(entries, undefined, { hasFrames: false })),
      "fr_0.json",
    ).entries;
    expect(first?.frames).toEqual([]);
  });
});

describe("what is refused", () => {
  const edited = (edit: (text: string) => string): Uint8Array => {
    const text = JSON.stringify(documentOf(entries.slice(0, 1)));
    const changed = edit(text);
    expect(changed).not.toBe(text);
    return new TextEncoder().encode(changed);
  };

  it.each([
    [
      "a function of Python",
      "gASVIQAAAAAAAAB9lIwHdmVyc2lvbpSMBXBvc2l4lIwGc3lzdGVtlJOUcy4=",
      /instruction 0x93 at byte 40/u,
    ],
    ["a set of Python", "gASVEAAAAAAAAAB9lIwBYZSPlChLAUsCkHMu", /instruction 0x8f/u],
    ["a dict with numbers as keys", "gAJ9cQBLAUsCcy4=", /a key of a dict that is no text/u],
    ["protocol 6", "gAZOLg==", /protocol 6 at byte 2/u],
    ["an end that comes early", "gAJ9cQA=", /the end of the file, 0 of 1 bytes at byte 5/u],
    ["a text longer than the file", "gAJY/////zo=", /the end of the file, 1 of 4294967295 bytes/u],
    ["a value that is not there", "gAJoCS4=", /no value 9 in the memo/u],
    ["an item without a list", "gAJLAUsBYS4=", /no list to append to/u],
    ["the name of a prototype", "gAJ9WAkAAABfX3Byb3RvX199cy4=", /a key named __proto__/u],
    ["a text that is no UTF-8", "gAJYAQAAAP8u", /no UTF-8/u],
    ["two values", "gAJOTi4=", /another number of values/u],
    ["a mark among values", "gAIoSwGGLg==", /too few values on the stack/u],
  ])("%s in a pickle", (_, text, found) => {
    const diagnostic = refused(base64(text));
    expect(diagnostic).toMatchObject({ code: "record-invalid", message: "a flight record is no pickle of plain data" });
    expect(diagnostic.found).toMatch(found);
  });

  it.each([
    ["no JSON", (text: string) => text.slice(0, -3), "fr_0.json", /JSON/u],
    ["an old version", (text: string) => text.replace('"2.10"', '"1.5"'), "fr_0.json: version", /^1\.5$/u],
    [
      "another state",
      (text: string) => text.replace('"completed"', '"done"'),
      "fr_0.json: entries[0].state",
      /"done"/u,
    ],
    ["no entry", (text: string) => text.replace(/\[\{"frames".*\}\]/u, "[7]"), "fr_0.json: entries[0]", /^7$/u],
    [
      "sizes that are texts",
      (text: string) => text.replace("[[4,4]]", '[["4"]]'),
      "fr_0.json: entries[0].input_sizes[0][0]",
      /"4"/u,
    ],
    [
      "too few dtypes",
      (text: string) => text.replace('["Float"]', "[]"),
      "fr_0.json: entries[0].input_dtypes",
      /\[\]/u,
    ],
    [
      "ranks that are no list",
      (text: string) => text.replace("[0, 1]", "f(0)"),
      "fr_0.json: pg_config.0.ranks",
      /f\(0\)/u,
    ],
    [
      "an op without a library",
      (text: string) => text.replace("nccl:", ""),
      "fr_0.json: entries[0].profiling_name",
      /all_reduce/u,
    ],
    [
      "a send without peers",
      (text: string) => text.replace("nccl:all_reduce", "nccl:send 0"),
      "fr_0.json: entries[0].profiling_name",
      /send 0/u,
    ],
  ])("%s", (_, edit, path, found) => {
    const diagnostic = refused(edited(edit));
    expect(diagnostic).toMatchObject({ code: "record-invalid", place: { kind: "file", path } });
    expect(diagnostic.found).toMatch(found);
  });

  it("is a file whose name has no rank", () => {
    expect(refused(jsonBytes(documentOf([])), "7/trace.json")).toMatchObject({
      code: "record-invalid",
      found: "trace.json",
    });
  });
});

it("tells records by what they begin with", async () => {
  const start = (bytes: Uint8Array): string => String.fromCharCode(...bytes.subarray(0, 256));
  for (const bytes of [pickleBytes(documentOf([])), jsonBytes(documentOf([])), base64(ofPython[4])])
    expect(flightRecords.magic.test(start(bytes))).toBe(true);
  expect(flightRecords.magic.test('{ "mesh": { "tp": 2 } }')).toBe(false);
  await expect(importModel(jsonBytes(documentOf([])), { file: "fr_0.json" })).rejects.toThrow(
    /found: a record of PyTorch's flight recorder\n.*\n {2}fix: compare the records of all ranks: braid verify FILES/u,
  );
});
