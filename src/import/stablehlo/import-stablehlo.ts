/** StableHLO text, as JAX prints it, with Shardy's shardings, to a Fusion. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { DumpSource } from "../../host/syntax/text/source.ts";
import { set } from "../../ir/api/ops.ts";
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import { at } from "../../support/invariant.ts";
import type { ImportedModel, ImportOptions } from "../model.ts";
import { narrowProducts } from "../raise/narrow-products.ts";
import { raiseAttention } from "../raise/raise-attention.ts";
import type { MadeFor } from "../raise/replace-ops.ts";
import { evaluateFunction } from "./evaluate-body.ts";
import { valueType } from "./ops/reading.ts";
import { importedFusion, madeAt, withSourceOrigins } from "../origins.ts";
import type { Reader } from "./reader.ts";
import { readMeshes } from "./sharding.ts";
import type { Attribute, MlirFunction, MlirModule } from "./syntax/nodes.ts";
import { readModules } from "./syntax/module.ts";
import { usedMeshes } from "./used-meshes.ts";
import { computed, dtypeIn, type MlirValue, wholePart } from "./value.ts";
import { fusionState } from "../../ir/api/handle.ts";
import { withoutDeadOps } from "../../ir/fusion-data.ts";
import { outputsOf } from "../../ir/ops/op.ts";
import { createUnionFind } from "../../support/union-find.ts";

/** Throws `model-syntax`, `model-unsupported`, `model-invalid`. */
export function importStablehlo(text: string, { file = "model", entry }: ImportOptions = {}): ImportedModel {
  const source: DumpSource = { file, text, firstLine: 1, prefixLength: 0, lines: null };
  const { module, main } = entryOf(readModules(text, file), entry, file);
  const meshes = readMeshes({ source }, module.operations, usedMeshes(module, main));
  const reader: Reader = {
    source,
    module,
    fusion: importedFusion(),
    meshes,
    types: new Map(),
    constants: new Map(),
    positions: [],
    placed: new Map(),
    calls: [],
    operations: 0,
    lines: new Map(),
    device: null,
  };
  const inputs = main.arguments.map(({ type, position }) => {
    const { element, shape } = valueType(reader, position, type);
    return madeAt(reader, position, () =>
      computed({ element, shape }, [], reader.fusion.input(shape, dtypeIn({ element, shape }))),
    );
  });
  const results = evaluateFunction(reader, main, inputs, null);
  for (const value of results) addOutput(reader, main.position, value);
  const { fusion } = reader;
  const madeFor: MadeFor = (id, make) => {
    madeAt(reader, reader.positions[id] ?? main.position, make);
  };
  raiseAttention(fusion[fusionState], madeFor);
  narrowProducts(fusion[fusionState], (devicesOf(reader) ?? 1) === 1, madeFor);
  const { outputs } = fusion;
  const inputNames = main.arguments.map(({ name, attributes }, i) => [
    namedBy(attributes.get("jax.arg_info")) ?? nameIn(name) ?? `in${i}`,
    `in${i}`,
  ]);
  const outputNames = main.resultAttributes.map(
    (attributes, i) => namedBy(attributes.get("jax.result_info")) ?? `out${i}`,
  );
  placeRest(reader);
  return {
    fusion: withSourceOrigins(reader, [
      ...inputs.map((value, i): readonly [TensorView, string] => [value.tensor(), at(at(inputNames, i), 0)]),
      ...outputs.map((tensor, i): readonly [TensorView, string] => [tensor, at(outputNames, i)]),
    ]),
    devices: devicesOf(reader),
    inputs: fusion.inputs.map((_, i) => ({
      names: inputNames[i] ?? [`constant${i}`],
      value: reader.constants.get(i) ?? null,
    })),
    outputs: outputNames,
  };
}

/** `main`, the function of that name, or the only public one of the text. */
function entryOf(
  modules: readonly MlirModule[],
  entry: string | undefined,
  file: string,
): { readonly module: MlirModule; readonly main: MlirFunction } {
  const all = modules.flatMap((module) => [...module.functions.values()].map((main) => ({ module, main })));
  const named = all.filter(({ main }) => main.name === (entry ?? "main"));
  const open = entry === undefined ? all.filter(({ main }) => main.isPublic && main.body !== null) : [];
  const [first] = named.length > 0 ? named : open;
  if (first !== undefined && (named.length > 0 || open.length === 1)) return first;
  const names = all.map(({ main }) => main.name);
  return fail({
    code: "model-invalid",
    message:
      entry === undefined ? "the file does not say which function to read" : `the file has no function @${entry}`,
    place: { kind: "file", path: file, line: 1, column: 1 },
    found:
      names.length === 0
        ? "no function"
        : `${names
            .slice(0, 8)
            .map((name) => `@${name}`)
            .join(", ")}${names.length > 8 ? ", ..." : ""}`,
    expected: entry === undefined ? "@main, or one public function" : `@${entry}`,
    help: "pass the text of jax.jit(f).lower(...).as_text(), or name a function with { entry }",
  });
}

/** An input, a constant, and what is returned twice need a tensor of their own. */
function addOutput(reader: Reader, position: number, value: MlirValue): void {
  madeAt(reader, position, () => {
    const { fusion, placed } = reader;
    const tensor = wholePart(reader, value);
    const isOwn =
      !fusion.inputs.some(({ id }) => id === tensor.id) && !fusion.outputs.some(({ id }) => id === tensor.id);
    const output = isOwn ? tensor : set(tensor);
    if (!isOwn) placed.delete(output.id);
    fusion.output(output);
  });
}

/** `x` for `x` and `%x`, `params.w` for `params['w']`; null for text that leaves no name. */
function nameIn(text: string): string | null {
  const name = text.replaceAll(/[^\w./-]+/gu, ".").replaceAll(/^[.\d]+|\.+$/gu, "");
  return /^(?!T\d+$)[A-Za-z_][\w./-]{0,63}$/u.test(name) ? name : null;
}

function namedBy(attribute: Attribute | undefined): string | null {
  return attribute?.kind === "string" ? nameIn(attribute.text) : null;
}

/* How many devices a model is for, and where tensors lie that no annotation reaches. */

/** The meshes of the tensors, or else those of the module. */
function meshesIn({ fusion, meshes }: Reader): readonly DeviceMesh[] {
  const placed = [...new Set(fusion.data().tensors.map(({ mesh }) => mesh))].flatMap((mesh) => mesh ?? []);
  return placed.length > 0 ? placed : [...meshes.byName.values()].flatMap(({ devices }) => devices ?? []);
}

/** As many as the meshes name. */
function devicesOf(reader: Reader): number | null {
  const last = meshesIn(reader).reduce((most, mesh) => Math.max(most, ...mesh.devices), -1);
  const partitions = reader.module.attributes.get("mhlo.num_partitions");
  const count = partitions?.kind === "number" ? Number(partitions.text) : 0;
  return Math.max(last + 1, count) || null;
}

/**
 * Gives parts of the program that no annotation reaches a place: all devices, each with the whole. Outputs that only
 * constants and numbers give have none either, whatever else reads these.
 */
function placeRest(reader: Reader): void {
  const { fusion } = reader;
  const [mesh] = meshesIn(reader).toSorted((a, b) => b.devices.length - a.devices.length);
  if (mesh === undefined) return;
  // Lowering removes ops without a use, and what they connect.
  const { tensors, ops, inputs, outputs } = withoutDeadOps(fusion.data());
  const parts = createUnionFind(tensors.length);
  const derived = tensors.map(() => false);
  for (const id of inputs) derived[id] = at(tensors, id).domain.logical.length > 0;
  for (const op of ops) {
    const isDerived = op.inputs.some((id) => derived[id]);
    for (const made of outputsOf(op)) {
      for (const id of op.inputs) parts.union(id, made);
      derived[made] = isDerived || tensors[made]?.mesh !== null;
    }
  }
  const reached = tensors.map(() => false);
  for (const { id, mesh: own } of tensors) if (own !== null) reached[parts.find(id)] = true;
  const first = [...inputs, ...ops.flatMap((op) => (op.inputs.length === 0 ? outputsOf(op) : []))];
  const unreached = first.filter((id) => !reached[parts.find(id)]);
  for (const id of new Set([...unreached, ...outputs.filter((each) => derived[each] !== true)])) {
    new TensorView({ builder: fusion[fusionState], id }).setDeviceMesh(mesh);
  }
}
