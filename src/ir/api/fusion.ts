/**
 * A Fusion is the program that a user writes: inputs, ops and outputs, and the transforms of each tensor. The class
 * only collects FusionData; lowering reads that data and never the class.
 */
import { requireOneOf } from "../../diagnostics/arguments.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { keysOf } from "../../support/invariant.ts";
import type { TensorId } from "../domain.ts";
import type { FusionData } from "../fusion-data.ts";
import { type Call, call, callOn, reject, requireExtent, shapeText } from "../ops/call.ts";
import { extentsDiffer } from "../scalar/fold.ts";
import { type Extent, extentIn, extentText } from "./extent.ts";
import {
  addInput,
  addOutput,
  createFusionBuilder,
  type FusionBuilder,
  growTo,
  markTensor,
  snapshotFusion,
} from "./fusion-builder.ts";
import { argumentOf, fusionState, internals, requireOwner, requireTensor } from "./handle.ts";
import { TensorView } from "./tensor-view.ts";

/** Marks Fusions across copies of the package, where `instanceof` fails. */
const fusionMarker: unique symbol = Symbol.for("braid.fusion");

/** A tensor program on whole tensors: `input`, the ops, `output`. TensorViews carry the sharding as annotations. */
export class Fusion {
  readonly [fusionMarker] = true;
  readonly #builder = createFusionBuilder();
  readonly #inputs: TensorView[] = [];
  readonly #outputs: TensorView[] = [];

  /** An empty program, or a copy of the one that `data` describes. */
  constructor(data?: FusionData) {
    if (data === undefined) return;
    growTo(this.#builder, data);
    const view = (id: TensorId): TensorView => new TensorView({ builder: this.#builder, id });
    this.#inputs.push(...data.inputs.map(view));
    this.#outputs.push(...data.outputs.map(view));
  }

  /**
   * Adds an input. `extents` has one entry per axis: a whole number, or null if the extent is known only at run time.
   * Its size is then given by the printed name (`i0`). An axis of another tensor, or its extent, stands for the same
   * size: `x.axis(0)`, `x.extents[0]`. An empty list makes a scalar tensor.
   * Throws `bad-extent`, `bad-argument`, `foreign-tensor`.
   */
  input(extents: readonly (Extent | null)[], dtype: DType = "float"): TensorView {
    const place = call("input", extents.map(extentText), dtype);
    const given = extents.map((extent) => {
      const known = extent === null ? null : extentIn(this.#builder, extent, place);
      return typeof known === "object" ? known : requireExtent(known, place);
    });
    requireDType(dtype, place);
    const id = addInput(this.#builder, given, dtype);
    markTensor(this.#builder, id);
    const view = new TensorView({ builder: this.#builder, id });
    this.#inputs.push(view);
    return view;
  }

  /**
   * Appends `tensor` to the outputs. With `alias`, state: it is written over that input, which then has its value in the
   * next run. Throws `foreign-tensor`, `alias-invalid` for an input that does not fit or that has an output already, and
   * `bad-argument` if the tensor is already an output.
   */
  output(tensor: TensorView, { alias }: OutputOptions = {}): void {
    requireTensor(tensor, "output", 0);
    const shown = alias === undefined ? [tensor] : [tensor, alias];
    const place = callOn(this.#builder.tensors, "output", () => shown.map((each) => argumentOf(each, this.#builder)));
    requireOwner(tensor, this.#builder, "the output", place);
    if (this.#builder.outputs.includes(tensor.id)) {
      reject(place, "bad-argument", `T${tensor.id} is already an output`, {
        found: "the same tensor twice",
        expected: "each output once",
        help: "copy it with set() for a second output",
      });
    }
    if (alias !== undefined) requireAlias(this.#builder, tensor, alias, place);
    addOutput(this.#builder, tensor[internals].id, alias?.id);
    this.#outputs.push(tensor);
  }

  /** @internal */
  get [fusionState](): FusionBuilder {
    return this.#builder;
  }

  get inputs(): readonly TensorView[] {
    return this.#inputs;
  }

  get outputs(): readonly TensorView[] {
    return this.#outputs;
  }

  /** The Fusion as immutable data. Returns the same object until the next change. */
  data(): FusionData {
    return snapshotFusion(this.#builder);
  }
}

export interface OutputOptions {
  readonly alias?: TensorView;
}

/** Throws `foreign-tensor` and `alias-invalid`. */
function requireAlias(builder: FusionBuilder, tensor: TensorView, alias: TensorView, place: Call): void {
  requireOwner(alias, builder, "the input that it replaces", place);
  const { inputs, outputs, aliases } = builder;
  const refuse = (message: string, found: string, help: string): never =>
    reject(place, { code: "alias-invalid", message, found, expected: "an input that the output can replace", help });
  const other = outputs[aliases.find(({ input }) => input === alias.id)?.output ?? -1];
  if (!inputs.includes(alias.id)) refuse(`T${alias.id} is not an input`, `T${alias.id}`, "name an input of the Fusion");
  if (other !== undefined)
    refuse(
      `T${other} replaces T${alias.id} too`,
      "one buffer for two outputs",
      "copy the input's value to one of them: an output without alias",
    );
  if (outputs.includes(alias.id) || tensor.id === alias.id)
    refuse(
      `T${alias.id} itself is an output`,
      "an output whose value is overwritten",
      "copy it with set() before, and make the copy an output",
    );
  const [own, replaced] = [tensor.data(), alias.data()];
  const sizes = [tensor, alias].map(({ extents }) => extents);
  const fits =
    sizes[0]?.length === sizes[1]?.length &&
    sizes[0]?.every((extent, i) => !extentsDiffer(extent, sizes[1]?.[i] ?? extent)) === true;
  if (fits && own.dtype === replaced.dtype) return;
  refuse(
    "the output does not fit into the input's buffer",
    `${own.dtype} ${shapeText(own)} for ${replaced.dtype} ${shapeText(replaced)}`,
    "give the output the input's shape and dtype",
  );
}

/** Whether `value` is a Fusion, made by this or another copy of the package. */
export function isFusion(value: unknown): value is Fusion {
  return typeof value === "object" && value !== null && fusionMarker in value;
}

/** Throws `bad-argument`. */
export function requireDType(dtype: unknown, place: Call): asserts dtype is DType {
  requireOneOf(keysOf(dtypes), dtype, "a dtype", place);
}
