/** Writes files as torch.export.save does, of a few nodes: for ops and damage that no recorded file has. */
import { keysOf } from "../../../src/support/invariant.ts";
import type { DType } from "../../../src/numerics/dtype.ts";
import { type Tensor, tensorBytes } from "../../../src/numerics/tensor/host-tensor.ts";

export type WrittenDType = DType | "complex64" | "uint8";

const codes: { readonly [D in WrittenDType]: number } = {
  uint8: 1,
  int: 4,
  int64: 5,
  half: 6,
  float: 7,
  double: 8,
  complex64: 10,
  bool: 12,
  bfloat16: 13,
  float8_e4m3fn: 29,
  float8_e5m2: 30,
};

/** A value of the graph as an argument. */
const value = (name: string): { readonly as_tensor: { readonly name: string } } => ({ as_tensor: { name } });
export const dtypeArgument = (dtype: WrittenDType): object => ({ as_scalar_type: codes[dtype] });
export const float = (number: number): object => ({ as_float: number });

type Given = number | boolean | string | null | object | readonly Given[];

/** A string is the name of a value; `{ as_string: "tanh" }` and such stay as they are. */
function argument(given: Given): object {
  if (given === null) return { as_none: true };
  if (typeof given === "number") return Number.isInteger(given) ? { as_int: given } : { as_float: given };
  if (typeof given === "boolean") return { as_bool: given };
  if (typeof given === "string") return value(given);
  if (!Array.isArray(given)) return given;
  const list: readonly Given[] = given;
  if (list.every((each) => typeof each === "number")) return { as_ints: list };
  if (list.includes(null)) {
    return { as_optional_tensors: list.map((each) => (typeof each === "string" ? value(each) : { as_none: true })) };
  }
  return { as_tensors: list.map((name) => ({ name })) };
}

export interface WrittenNode {
  /** `add.Tensor`; with a dot in front, another namespace than ATen's. */
  readonly op: string;
  readonly inputs: Readonly<Record<string, Given>>;
  /** The dtype and sizes of each result. */
  readonly outputs: Readonly<Record<string, readonly [WrittenDType, readonly (number | string)[]]>>;
  /** `layers.0.mlp` */
  readonly module?: string;
  readonly trace?: string;
  /** What export says of where the node comes from. */
  readonly from?: string;
  /** The results as one list: of split and chunk. */
  readonly list?: boolean;
}

export interface WrittenModel {
  readonly inputs?: Readonly<Record<string, readonly [WrittenDType, readonly (number | string)[]]>>;
  readonly parameters?: Readonly<Record<string, Tensor>>;
  readonly buffers?: Readonly<Record<string, Tensor>>;
  readonly nodes: readonly WrittenNode[];
  readonly outputs: readonly string[];
  readonly ranges?: Readonly<Record<string, readonly [number, number]>>;
}

function metaOf([dtype, sizes]: readonly [WrittenDType, readonly (number | string)[]]): object {
  const size = (each: number | string): object =>
    typeof each === "number" ? { as_int: each } : { as_expr: { expr_str: each, hint: { as_int: 3 } } };
  let stride = 1;
  const strides = sizes.toReversed().map((each) => {
    const own = stride;
    stride *= typeof each === "number" ? each : 3;
    return { as_int: own };
  });
  return {
    dtype: codes[dtype],
    sizes: sizes.map(size),
    requires_grad: false,
    device: { type: "cpu", index: null },
    strides: strides.toReversed(),
    storage_offset: { as_int: 0 },
    layout: 7,
  };
}

/** The documents and payloads of the archive, by name. */
export function entriesOf(model: WrittenModel): Record<string, Uint8Array | string> {
  const { inputs = {}, parameters = {}, buffers = {} } = model;
  const held = { ...parameters, ...buffers };
  const graphName = (name: string): string => name.replaceAll(".", "_");
  const tensors: [string, object][] = [
    ...Object.entries(held).map(([name, tensor]): [string, object] => [
      graphName(name),
      metaOf([tensor.dtype, tensor.shape]),
    ]),
    ...Object.entries(inputs).map(([name, meta]): [string, object] => [name, metaOf(meta)]),
    ...model.nodes.flatMap(({ outputs }) =>
      Object.entries(outputs).map(([name, meta]): [string, object] => [name, metaOf(meta)]),
    ),
  ];
  const document = {
    schema_version: { major: 8, minor: 17 },
    torch_version: "2.11.0",
    range_constraints: Object.fromEntries(
      Object.entries(model.ranges ?? {}).map(([name, [min, max]]) => [name, { min_val: min, max_val: max }]),
    ),
    graph_module: {
      graph: {
        nodes: model.nodes.map(({ op, inputs: given, outputs, module = "", trace = "", from = "", list = false }) => ({
          target: op.startsWith(".") ? op.slice(1) : `torch.ops.aten.${op}`,
          inputs: Object.entries(given).map(([name, each]) => ({ name, arg: argument(each), kind: 1 })),
          outputs: list
            ? [{ as_tensors: keysOf(outputs).map((name) => ({ name })) }]
            : keysOf(outputs).map((name) => value(name)),
          metadata: {
            nn_module_stack:
              module === "" ? "L__self__,,Model" : `L__self__,,Model;L__self__m,${module},torch.nn.Module`,
            stack_trace: trace,
            from_node: from,
          },
        })),
        tensor_values: Object.fromEntries(tensors),
      },
      signature: {
        input_specs: [
          ...keysOf(parameters).map((name) => ({
            parameter: { arg: { name: graphName(name) }, parameter_name: name },
          })),
          ...keysOf(buffers).map((name) => ({
            buffer: { arg: { name: graphName(name) }, buffer_name: name, persistent: true },
          })),
          ...keysOf(inputs).map((name) => ({ user_input: { arg: value(name) } })),
        ],
        output_specs: model.outputs.map((name) => ({ user_output: { arg: value(name) } })),
      },
    },
  };
  const config = Object.entries(held).map(([name, tensor], i): [string, object] => [
    name,
    { path_name: `weight_${i}`, is_param: true, use_pickle: false, tensor_meta: metaOf([tensor.dtype, tensor.shape]) },
  ]);
  return {
    ...Object.fromEntries(
      Object.values(held).map((tensor, i) => [`data/weights/weight_${i}`, tensorBytes(tensor)] as const),
    ),
    "data/weights/model_weights_config.json": JSON.stringify({ config: Object.fromEntries(config) }),
    "models/model.json": JSON.stringify(document),
    archive_format: "pt2",
    byteorder: "little",
  };
}

/** A zip archive of stored entries. `method` and the names are as given: damaged ones too. */
export function zipOf(
  entries: Readonly<Record<string, Uint8Array | string>>,
  { folder = "model/", method = 0 }: { readonly folder?: string; readonly method?: number } = {},
): Uint8Array {
  const pieces: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let position = 0;
  const add = (
    list: Uint8Array[],
    fields: readonly (readonly [bytes: 2 | 4, number])[],
    ...rest: Uint8Array[]
  ): number => {
    const header = new DataView(new ArrayBuffer(fields.reduce((sum, [bytes]) => sum + bytes, 0)));
    let next = 0;
    for (const [bytes, number] of fields) {
      if (bytes === 2) header.setUint16(next, number, true);
      else header.setUint32(next, number, true);
      next += bytes;
    }
    const all = [new Uint8Array(header.buffer), ...rest];
    list.push(...all);
    return all.reduce((sum, { length }) => sum + length, 0);
  };
  for (const [name, content] of Object.entries(entries)) {
    const [path, bytes] = [
      new TextEncoder().encode(folder + name),
      typeof content === "string" ? new TextEncoder().encode(content) : content,
    ];
    const shared = [
      [2, 0],
      [2, method],
      [2, 0],
      [2, 0],
      [4, 0],
      [4, bytes.length],
      [4, bytes.length],
      [2, path.length],
      [2, 0],
    ] as const;
    const start = position;
    position += add(pieces, [[4, 0x04034b50], [2, 20], ...shared], path, bytes);
    add(directory, [[4, 0x02014b50], [2, 20], [2, 20], ...shared, [2, 0], [2, 0], [2, 0], [4, 0], [4, start]], path);
  }
  const [count, size] = [Object.keys(entries).length, directory.reduce((sum, { length }) => sum + length, 0)];
  add(directory, [
    [4, 0x06054b50],
    [2, 0],
    [2, 0],
    [2, count],
    [2, count],
    [4, size],
    [4, position],
    [2, 0],
  ]);
  return Uint8Array.from([...pieces, ...directory].flatMap((each) => [...each]));
}

export function modelFile(model: WrittenModel): Uint8Array {
  return zipOf(entriesOf(model));
}
