/**
 * `braid run --inputs --out`: files of tensors. The files of fixtures/tensor-files were written by NumPy 2.4,
 * ml_dtypes 0.6 and safetensors 0.8.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { statusOf } from "../../src/cli/exit-status.ts";
import {
  findInputFiles,
  readInputFiles,
  requireFileShapes,
  sizesWithFiles,
} from "../../src/cli/tensor-files/input-files.ts";
import { drawInputs, drawSpecialInputs } from "../../src/compile/program/inputs.ts";
import { requireOutputPlace, writeOutputFiles } from "../../src/cli/tensor-files/output-files.ts";
import { safetensorsTensors } from "../../src/cli/tensor-files/safetensors.ts";
import { readStored, withTensorFile } from "../../src/cli/tensor-files/stored-tensor.ts";
import { type Diagnostic, DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, set } from "../../src/ir/api/ops.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { randomTensor } from "../../src/oracle/random-inputs.ts";
import { keysOf } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { cli } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const fixture = (name: string): string => path.resolve(import.meta.dirname, "../fixtures/tensor-files", name);

const folder = ownFolder();

type Extents = readonly (number | null)[];

/** A program that copies inputs of this dtype and these shapes. */
function copying(dtype: DType, ...shapes: readonly Extents[]): Fusion {
  const f = new Fusion();
  for (const shape of shapes) f.output(set(f.input(shape, dtype)));
  return f;
}

/** The inputs that `braid run` takes from `NAME=FILE` or `FILE`. */
async function inputsOf(
  fusion: Fusion,
  files: readonly string[],
  given: Readonly<Record<string, number>> = {},
): Promise<readonly (Tensor | undefined)[]> {
  const signature = fusion.data();
  const split = files.map((text) => {
    const [file = "", name = null] = text.split("=").toReversed();
    return { name, file };
  });
  const found = await findInputFiles(signature, split);
  requireFileShapes(signature, found, sizesWithFiles(signature, found, new Map(Object.entries(given))));
  const read = await readInputFiles(signature, found);
  return signature.inputs.map((_, i) => read.get(i));
}

const floats = [0, 1, -2.5, 3, -0, 448];
const elements: { readonly [D in DType]: readonly (number | bigint)[] } = {
  double: floats,
  float: floats,
  half: floats,
  bfloat16: floats,
  float8_e4m3fn: floats,
  float8_e5m2: floats,
  int: [0, 1, -2, 3, 2 ** 31 - 1, -(2 ** 31)],
  int64: [0n, 2n ** 31n, -(2n ** 32n), 3n * 2n ** 31n, (2n ** 31n - 1n) * 2n ** 31n, -(2n ** 62n)],
  bool: [0, 1, 1, 1, 0, 0],
};

describe("a file of tensors", () => {
  it.each(keysOf(dtypes))("by NumPy, of dtype %s, is read and written byte by byte", async (dtype) => {
    const [tensor] = await inputsOf(copying(dtype, [2, 3]), [`T0=${fixture(`${dtype}.npy`)}`]);
    if (tensor === undefined) throw new Error("the input has a file");
    expect(tensor).toMatchObject({ dtype, shape: [2, 3] });
    expect(Tensor.values(tensor)).toEqual(elements[dtype]);
    const [file = ""] = await writeOutputFiles({ kind: "folder", path: folder.path }, new Map([["T0", tensor]]));
    expect(readFileSync(file).equals(readFileSync(fixture(`${dtype}.npy`)))).toBe(true);
  });

  it("by safetensors has all dtypes", async () => {
    const stored = await withTensorFile(fixture("all.safetensors"), safetensorsTensors);
    expect(new Set(stored.map(({ name, dtype }) => `${name} ${dtype}`))).toEqual(
      new Set(keysOf(dtypes).map((dtype) => `${dtype} ${dtype}`)),
    );
    for (const each of stored) {
      if (each.dtype === null) throw new Error("every dtype is known");
      expect(Tensor.values(await readStored(each, each.dtype))).toEqual(elements[each.dtype]);
    }
  });

  it("in version 2 of npy, of bfloat16 as uint16, and without axes", async () => {
    const read = async (dtype: DType, shape: Extents, name: string): Promise<unknown> =>
      (await inputsOf(copying(dtype, shape), [`T0=${fixture(name)}`]))[0]?.data;
    expect(await read("float", [2, 3], "version-2.npy")).toEqual(Float32Array.from(floats));
    expect(await read("bfloat16", [2, 3], "bfloat16-as-uint16.npy")).toEqual(
      await read("bfloat16", [2, 3], "bfloat16.npy"),
    );
    expect(await read("float", [], "scalar.npy")).toEqual(Float32Array.of(7));
  });

  it("is read as Braid wrote it", async () => {
    const shapes = [[6], [2, 3], [1, 3, 1, 2], []];
    for (const dtype of keysOf(dtypes)) {
      const random = createRandom(1);
      const tensors = shapes.map((shape) => randomTensor({ dtype, shape }, random, "special"));
      // Inputs are T0, T2, ... here, and the copies between them.
      const named = new Map(tensors.map((tensor, i) => [`T${2 * i}`, tensor]));
      const program = copying(dtype, ...shapes);
      const npy = await writeOutputFiles({ kind: "folder", path: folder.path }, named);
      expect(
        await inputsOf(
          program,
          npy.map((file) => `${path.basename(file, ".npy")}=${file}`),
        ),
      ).toEqual(tensors);
      const [all = ""] = await writeOutputFiles(
        { kind: "file", path: path.join(folder.path, "outputs.safetensors") },
        named,
      );
      expect(await inputsOf(program, [all])).toEqual(tensors);
      expect(await inputsOf(program, [`T2=${all}`])).toEqual([undefined, tensors[1], undefined, undefined]);
    }
  });

  it("gives inputs by number, or by the name that the program gives them", async () => {
    const f = new Fusion();
    f.output(add(f.input([2, 3]), f.input([2, 3]).named("w")));
    const data = f.data();
    // As of a constant T1 that holds tensor 0.
    const tensors = data.tensors.map((tensor) =>
      tensor.id === 0 ? { ...tensor, origin: { ...tensor.origin, constant: "T1" } } : tensor,
    );
    const file = fixture("float.npy");
    const given = async (...names: readonly string[]): Promise<readonly number[]> => [
      ...(
        await findInputFiles(
          { ...data, tensors },
          names.map((name) => ({ name, file })),
        )
      ).keys(),
    ];
    expect(await given("w")).toEqual([1]);
    expect(await given("T1")).toEqual([1]);
    expect(await given("T0", "w")).toEqual([0, 1]);
    await expect(given("w", "T1")).rejects.toThrow("option-value");
    await expect(given("v")).rejects.toThrow("expected: one of T0, T1, T1, w");
  });

  it("binds the sizes of symbolic extents", async () => {
    const signature = copying("float", [null, 3]).data();
    const found = await findInputFiles(signature, [{ name: "T0", file: fixture("float.npy") }]);
    expect(sizesWithFiles(signature, found, new Map())).toEqual(new Map([["i0", 2]]));
  });
});

/** The one diagnostic of a rejected promise, which ends `braid` with status 2. */
async function refusal(work: Promise<unknown>): Promise<Diagnostic> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof DiagnosticError)) throw new Error("no diagnostic", { cause: error });
  const [first] = error.diagnostics;
  expect(error.diagnostics).toHaveLength(1);
  expect(statusOf(error.diagnostics)).toBe(2);
  for (const part of [first?.place, first?.found, first?.expected, first?.help]) expect(part).toBeDefined();
  if (first === undefined) throw new Error("no diagnostic");
  return first;
}

/** A file with the bytes of a fixture after a change. */
function changed(name: string, change: (bytes: Buffer) => Uint8Array | string): string {
  const file = path.join(folder.path, `changed${path.extname(name)}`);
  writeFileSync(file, change(readFileSync(fixture(name))));
  return file;
}

/** A safetensors file with this header and 24 bytes of elements. */
function withHeader(header: string, length = header.length): string {
  const prelude = Buffer.alloc(8);
  prelude.writeBigUInt64LE(BigInt(length));
  return changed("all.safetensors", () => Buffer.concat([prelude, Buffer.from(header), Buffer.alloc(24)]));
}

const entry = (text: string): string => `{"T0":{"dtype":"F32","shape":[2,3],"data_offsets":${text}}}`;

/** A header of tensors of float [2, 3] by name, in turn, of this many bytes each. */
const named = (...names: readonly string[]): string =>
  `{${names.map((name, i) => `${JSON.stringify(name)}:{"dtype":"F32","shape":[2,3],"data_offsets":[${24 * i},${24 * i + 24}]}`).join()}}`;

/** npy of float [2, 3] whose header is this text, padded. */
function withDict(dict: string): string {
  return changed("float.npy", (bytes) => {
    const header = Buffer.from(`${dict.padEnd(117)}\n`, "latin1");
    return Buffer.concat([bytes.subarray(0, 8), Buffer.from([118, 0]), header, bytes.subarray(128)]);
  });
}

const dictOf = (shape: string, descr = "'<f4'", order = "False"): string =>
  `{'descr': ${descr}, 'fortran_order': ${order}, 'shape': ${shape}, }`;

interface Refused {
  readonly files: () => readonly string[];
  readonly code: Diagnostic["code"];
  readonly found: string;
  readonly expected: string;
  readonly program?: Fusion;
  readonly sizes?: Readonly<Record<string, number>>;
}

const refused: Readonly<Record<string, Refused>> = {
  "a missing file": {
    files: () => ["T0=nowhere.npy"],
    code: "file-unreadable",
    found: "no such file or directory",
    expected: "a readable file",
  },
  "a folder": {
    files: () => (mkdirSync(path.join(folder.path, "f.npy")), [`T0=${path.join(folder.path, "f.npy")}`]),
    code: "file-unreadable",
    found: "a folder",
    expected: "a readable file",
  },
  "another format": {
    files: () => ["T0=x.pt"],
    code: "option-value",
    found: "a file that ends in .pt",
    expected: "ends in .npy or .safetensors",
  },
  "an unknown name": {
    files: () => [`x=${fixture("float.npy")}`],
    code: "option-unknown",
    found: "x",
    expected: "one of T0",
  },
  "the name of an output": {
    files: () => [`T1=${fixture("float.npy")}`],
    code: "option-unknown",
    found: "T1",
    expected: "one of T0",
  },
  "no name": { files: () => [fixture("float.npy")], code: "option-value", found: "float.npy", expected: "NAME=FILE" },
  "a name twice": {
    files: () => [`T0=${fixture("float.npy")}`, `T0=${fixture("version-2.npy")}`],
    code: "option-value",
    found: "version-2.npy",
    expected: "one file per input",
  },
  "names that the program does not have": {
    files: () => [fixture("all.safetensors")],
    code: "option-unknown",
    found: "int64",
    expected: "one of T0",
  },
  "a tensor that is not in the file": {
    files: () => [`T0=${fixture("all.safetensors")}`],
    code: "option-value",
    found: "int64",
    expected: "a tensor T0, or one tensor only",
  },
  "another dtype": {
    files: () => [`T0=${fixture("half.npy")}`],
    code: "input-shape",
    found: "half (<f2) [2, 3]",
    expected: "float [2, 3]",
  },
  "a dtype that Braid does not have": {
    files: () => [`T0=${fixture("uint8.npy")}`],
    code: "input-shape",
    found: "a dtype that Braid does not have (|u1) [2, 3]",
    expected: "float [2, 3]",
  },
  "another number of axes": {
    files: () => [`T0=${fixture("scalar.npy")}`],
    code: "input-shape",
    found: "float (<f4) []",
    expected: "float [2, 3]",
  },
  "another shape": {
    files: () => [`T0=${fixture("float.npy")}`],
    program: copying("float", [2, 4]),
    code: "input-shape",
    found: "[2, 3]",
    expected: "[2, 4]",
  },
  "a size that contradicts --sizes": {
    files: () => [`T0=${fixture("float.npy")}`],
    program: copying("float", [null, 3]),
    sizes: { i0: 8 },
    code: "size-mismatch",
    found: "2 along axis 0, and 8 from --sizes",
    expected: "one size for all axes of extent i0",
  },
  records: {
    files: () => [`T0=${fixture("record.npy")}`],
    code: "tensor-file-invalid",
    found: "an array of records",
    expected: "elements of one dtype",
  },
  "Fortran order": {
    files: () => [`T0=${fixture("fortran.npy")}`],
    code: "tensor-file-invalid",
    found: "Fortran order",
    expected: "C order",
  },
  "big-endian elements": {
    files: () => [`T0=${fixture("big-endian.npy")}`],
    code: "tensor-file-invalid",
    found: ">f4, big-endian",
    expected: "<f4, little-endian",
  },
  "npy that is cut off": {
    files: () => [`T0=${changed("float.npy", (bytes) => bytes.subarray(0, -3))}`],
    code: "tensor-file-invalid",
    found: "21 bytes of elements",
    expected: "24 bytes for float [2, 3]",
  },
  "npy with two arrays": {
    files: () => [`T0=${changed("float.npy", (bytes) => Buffer.concat([bytes, bytes]))}`],
    code: "tensor-file-invalid",
    found: "176 bytes of elements",
    expected: "24 bytes for float [2, 3]",
  },
  "npy that is cut off in its header": {
    files: () => [`T0=${changed("float.npy", (bytes) => bytes.subarray(0, 70))}`],
    code: "tensor-file-invalid",
    found: "the end of the file within the header",
    expected: "a .npy file",
  },
  "npy without a header": {
    files: () => [`T0=${changed("float.npy", (bytes) => bytes.subarray(0, 9))}`],
    code: "tensor-file-invalid",
    found: "other bytes",
    expected: "a .npy file",
  },
  "an empty npy": {
    files: () => [`T0=${changed("float.npy", () => "")}`],
    code: "tensor-file-invalid",
    found: "an empty file",
    expected: "a .npy file",
  },
  "npy with another header": {
    files: () => [
      `T0=${changed("float.npy", (bytes) => Buffer.from(bytes.toString("latin1").replace("shape", "shaqe"), "latin1"))}`,
    ],
    code: "tensor-file-invalid",
    found: "the header",
    expected: "a .npy file",
  },
  "safetensors whose elements are cut off": {
    files: () => [changed("all.safetensors", (bytes) => bytes.subarray(0, -1))],
    code: "tensor-file-invalid",
    found: "bytes of elements for",
    expected: "bytes for",
  },
  "safetensors of fewer than eight bytes": {
    files: () => [changed("all.safetensors", (bytes) => bytes.subarray(0, 7))],
    code: "tensor-file-invalid",
    found: "the end of the file within the first eight bytes",
    expected: "a .safetensors file",
  },
  "safetensors that are cut off in their header": {
    files: () => [changed("all.safetensors", (bytes) => bytes.subarray(0, 100))],
    code: "tensor-file-invalid",
    found: "the end of the file within the header",
    expected: "a .safetensors file",
  },
  "safetensors with a header longer than the format allows": {
    files: () => [withHeader("{}", 2 ** 40)],
    code: "tensor-file-invalid",
    found: `a header of ${2 ** 40} bytes`,
    expected: "a .safetensors file",
  },
  "safetensors whose header is not JSON": {
    files: () => [withHeader("{]")],
    code: "tensor-file-invalid",
    found: "a header that is not JSON",
    expected: "a .safetensors file",
  },
  ...Object.fromEntries(
    (
      [
        ["a list", "[]", "a header that is not an object"],
        ["a list of entries", `[${entry("[0,24]")}]`, "a header that is not an object"],
        ["null", "null", "a header that is not an object"],
        ["a mark of the byte order", `\uFEFF${entry("[0,24]")}`, "a header that is not JSON"],
        ["a key twice", named("T0").replace("}}", `},${named("T0").slice(1)}`), 'the key "T0" is given twice'],
        [
          "a key twice, once escaped",
          named("T0").replace("}}", `},${named("T0").slice(1).replace("T0", "\\u0054\\u0030")}`),
          "is given twice",
        ],
        [
          "a key twice in an entry",
          named("T0").replace('"shape":[2,3]', '"shape":[3,2],"shape":[2,3]'),
          'the key "shape" is given twice',
        ],
        ["a text for an entry", '{"T0":"F32"}', "a header whose entry T0 is not a tensor's"],
        ["a list for an entry", '{"T0":[]}', "a header whose entry T0 is not a tensor's"],
        ["a member missing", '{"T0":{"dtype":"F32","shape":[2,3]}}', "a header whose entry T0 is not a tensor's"],
        [
          "a dtype that the format does not have",
          named("T0").replace("F32", "F33"),
          "a header whose entry T0 is not a tensor's",
        ],
        ["a fraction in a shape", named("T0").replace("[2,3]", "[2.5,3]"), "a header whose entry T0 is not a tensor's"],
        ["a text in a shape", named("T0").replace("[2,3]", '["2",3]'), "a header whose entry T0 is not a tensor's"],
        ["a huge extent", named("T0").replace("[2,3]", "[1e300,3]"), "a header whose entry T0 is not a tensor's"],
        ["a negative offset", entry("[-24,0]"), "a header whose entry T0 is not a tensor's"],
        ["three offsets", entry("[0,24,24]"), "a header whose entry T0 is not a tensor's"],
        ["offsets in the wrong order", entry("[24,0]"), "0 bytes of elements for T0"],
        [
          "bytes of two tensors",
          named("T0", "T1").replace("[24,48]", "[0,24]"),
          "T1, which has bytes of another tensor",
        ],
        ["a hole before a tensor", entry("[8,24]").replace("[2,3]", "[2,2]"), "8 bytes of no tensor before T0"],
        ["a hole at the end", entry("[0,16]").replace("[2,3]", "[2,2]"), "8 bytes of no tensor at the end of the file"],
        [
          "a tensor of another dtype beyond the end",
          entry("[0,32]").replace("F32", "F8_E8M0"),
          "8 bytes before that of its tensors",
        ],
        [
          "metadata that is a text",
          '{"__metadata__":"none"}',
          "a header whose __metadata__ does not map texts to texts",
        ],
        [
          "metadata of numbers",
          '{"__metadata__":{"epoch":3}}',
          "a header whose __metadata__ does not map texts to texts",
        ],
      ] as const
    ).map(([what, header, found]): [string, Refused] => [
      `safetensors with ${what} in the header`,
      {
        files: () => [withHeader(header, Buffer.byteLength(header))],
        code: "tensor-file-invalid",
        found,
        expected: found.includes("elements") ? "24 bytes for float [2, 3]" : "a .safetensors file",
      },
    ]),
  ),
  ...Object.fromEntries(
    ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"].map((name): [string, Refused] => [
      `safetensors with a tensor ${name}`,
      { files: () => [withHeader(named(name))], code: "option-unknown", found: name, expected: "one of T0" },
    ]),
  ),
  "safetensors without tensors": {
    files: () => [changed("all.safetensors", () => "\u0002\0\0\0\0\0\0\0{}")],
    code: "option-value",
    found: "a header without tensors",
    expected: "a tensor for each input",
  },
  ...Object.fromEntries(
    [
      dictOf("(2 3)"),
      dictOf("(6)"),
      dictOf("(2,,3)"),
      dictOf("(2, -3)"),
      dictOf("(2.0, 3)"),
      dictOf("(02, 3)"),
      dictOf("[2, 3]"),
      dictOf("(2, 3"),
      dictOf("(2, 3)", "<f4"),
      dictOf("(2, 3)", "'<f4'", "0"),
      dictOf("(2, 3)").replace("}", "'shape': (2, 3), }"),
      dictOf("(2, 3)").replace("}", "'more': True, }"),
      dictOf("(2, 3)").replace("'shape'", "'fortran_order'"),
      `${dictOf("(2, 3)")} and more`,
      dictOf("(2, 3)").slice(1),
    ].map((dict): [string, Refused] => [
      `npy with the header ${dict}`,
      {
        files: () => [`T0=${withDict(dict)}`],
        code: "tensor-file-invalid",
        found: "the header",
        expected: "a .npy file",
      },
    ]),
  ),
  "npy of version 1.1": {
    files: () => [`T0=${changed("float.npy", (bytes) => (bytes.writeUInt8(1, 7), bytes))}`],
    code: "tensor-file-invalid",
    found: "other bytes",
    expected: "version 1.0 to 3.0",
  },
  "npy of an unknown byte order": {
    files: () => [`T0=${withDict(dictOf("(2, 3)", "'xf4'"))}`],
    code: "input-shape",
    found: "a dtype that Braid does not have (xf4)",
    expected: "float [2, 3]",
  },
  "safetensors whose header is a number": {
    files: () => [withHeader("17")],
    code: "tensor-file-invalid",
    found: "a header that is not an object",
    expected: "a .safetensors file",
  },
  "safetensors with an entry of another form": {
    files: () => [withHeader(`{"T0":{"dtype":"F32","shape":[2,-3],"data_offsets":[0,24]}}`)],
    code: "tensor-file-invalid",
    found: "a header whose entry T0 is not a tensor's",
    expected: "a .safetensors file",
  },
  "safetensors with offsets that do not fit the shape": {
    files: () => [withHeader(entry("[4,24]"))],
    code: "tensor-file-invalid",
    found: "20 bytes of elements for T0",
    expected: "24 bytes for float [2, 3]",
  },
  "safetensors with offsets beyond the end": {
    files: () => [withHeader(entry("[8,32]"))],
    code: "tensor-file-invalid",
    found: "16 bytes of elements for T0",
    expected: "24 bytes for float [2, 3]",
  },
};

it("of a named pipe is refused at once", async () => {
  const pipe = path.join(folder.path, "pipe.npy");
  spawnSync("mkfifo", [pipe]);
  expect(await refusal(inputsOf(copying("float", [2, 3]), [`T0=${pipe}`]))).toMatchObject({
    code: "file-unreadable",
    found: "a pipe or a device",
  });
});

it.each([dictOf("(2, 3)"), dictOf("(2,3,)"), `{ "shape":(2, 3), 'fortran_order' :False,"descr": '=f4'}`])(
  "npy with the header %s is read",
  async (dict) => {
    const [tensor] = await inputsOf(copying("float", [2, 3]), [`T0=${withDict(dict)}`]);
    expect(tensor?.data).toEqual(Float32Array.from(floats));
  },
);

it("safetensors with tensors out of order in the header is read", async () => {
  const header = named("T2", "T0")
    .replace("[0,24]", "[24,48]")
    .replace(/\[24,48\](?=\}\}$)/, "[0,24]");
  const file = withHeader(header);
  writeFileSync(file, Buffer.concat([readFileSync(file), Buffer.from(Float32Array.from(floats).buffer)]));
  const [first, second] = await inputsOf(copying("float", [2, 3], [2, 3]), [file]);
  expect([first?.data, second?.data]).toEqual([new Float32Array(6), Float32Array.from(floats)]);
});

it.each(Object.entries(refused))("%s is refused", async (_, { files, program, sizes, code, found, expected }) => {
  const diagnostic = await refusal(inputsOf(program ?? copying("float", [2, 3]), files(), sizes));
  expect(diagnostic.code).toBe(code);
  expect(diagnostic.found).toContain(found);
  expect(diagnostic.expected).toContain(expected);
});

describe("the folder of outputs", () => {
  it("is made if it does not exist", async () => {
    const made = path.join(folder.path, "made");
    for (let i = 0; i < 2; i++) await requireOutputPlace({ outputDir: made });
    expect(readdirSync(made)).toEqual([]);
  });

  it("is refused if it is a file, or cannot be made", async () => {
    const file = folder.write("file", "");
    for (const bad of [file, path.join(file, "below"), path.join(folder.path, "no", "out")]) {
      expect((await refusal(requireOutputPlace({ outputDir: bad }))).code).toBe("file-unwritable");
    }
  });
});

describe("the inputs of a run", () => {
  const f = new Fusion();
  for (const dtype of ["float", "int", "float"] as const) f.output(set(f.input([100], dtype)));
  const { signature, zeros } = { signature: f.data(), zeros: Tensor.zeros([100], "float") };
  const draw = (given: ReadonlyMap<number, Tensor>): readonly Tensor[] => drawInputs(signature, new Map(), 1, given);
  const indices = Tensor.from(
    Array.from({ length: 100 }, (_, i) => i),
    "int",
  );

  it("are random where no file is given, the same ones whichever others are given", () => {
    const [first, second, third] = draw(new Map());
    expect(draw(new Map([[0, zeros]]))).toEqual([zeros, second, third]);
    expect(draw(new Map([[1, indices]]))).toEqual([first, indices, third]);
  });

  it("have special values of floats only, where files are given", () => {
    const given = new Map<number, Tensor>([
      [0, zeros],
      [1, indices],
    ]);
    const [first, second] = drawSpecialInputs(signature, new Map(), 1, given);
    expect(first?.data).toContain(Infinity);
    expect(second).toEqual(indices);
  });
});

describe("braid run", () => {
  const program = `import { DeviceMesh, Fusion, matmul, program } from "@braid-compiler/braid";
    export default program({ dtype: "float" }, ({ devices, params: { dtype } }) => {
      const f = new Fusion();
      const a = f.input([devices, null, 4], dtype);
      const b = f.input([4, 2], dtype);
      const c = matmul(a, b);
      f.output(c);
      for (const t of [a, b, c]) t.setDeviceMesh(DeviceMesh.range(devices));
      a.axis(0).parallelize("DIDx");
      return f;
    });`;

  it.each([1, 2, 4])(
    "cuts the files of inputs into shards of %i devices, and writes whole outputs",
    async (devices) => {
      const file = folder.write("product.ts", program);
      const a = randomTensor({ dtype: "bfloat16", shape: [devices, 3, 4] }, createRandom(1), "small-integers");
      const identity = Tensor.from([[1, 0], [0, 1], [0, 0], [0, 0]], "bfloat16"); // prettier-ignore
      const [inputs = ""] = await writeOutputFiles({ kind: "file", path: path.join(folder.path, "outputs.safetensors") }, new Map([["T0", a], ["T1", identity]])); // prettier-ignore
      const out = path.join(folder.path, `out-${devices}`);
      const flags = ["--set", "dtype=bfloat16", "--inputs", inputs, "--check", "--out", out];
      const run = await cli("run", file, "--devices", String(devices), ...flags);
      expect([run.status, run.err]).toEqual([0, ""]);
      expect(run.out).toContain("passed");
      expect(run.out).toContain(`outputs: ${path.join(out, "T2.npy")}\n`);
      const one = await cli("run", file, "--devices", String(devices), ...flags.with(-1, `${out}.safetensors`));
      expect(one.out).toContain(`outputs: ${out}.safetensors\n`);
      const [c] = await inputsOf(copying("bfloat16", [devices, 3, 2]), [`T0=${path.join(out, "T2.npy")}`]);
      expect(await inputsOf(copying("bfloat16", [devices, 3, 2]), [`T0=${out}.safetensors`])).toEqual([c]);
      if (c === undefined) throw new Error("there is an output");
      expect(Tensor.values(c)).toEqual(Tensor.values(a).filter((_, i) => i % 4 < 2));
    },
  );

  it("refuses bad files before the run, and another dtype than the declared kind", async () => {
    const file = folder.write("product.ts", program);
    const cases = [
      [["--inputs", "T1=nowhere.npy"], "error[file-unreadable]"],
      [["--out", path.join(file, "out"), "--sizes", "i1=2"], "error[file-unwritable]"],
      [["--out", path.join(file, "y.safetensors"), "--sizes", "i1=2"], "--out"],
      [
        ["--set", "dtype=3"],
        "expected: a dtype: double, float, half, bfloat16, float8_e4m3fn, float8_e5m2, int, int64, bool",
      ],
    ] as const;
    for (const [flags, message] of cases) {
      const { status, out, err } = await cli("run", file, "--devices", "1", ...flags);
      expect([status, out]).toEqual([2, ""]);
      expect(err).toContain(message);
    }
  });
});
