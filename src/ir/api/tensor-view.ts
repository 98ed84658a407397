/**
 * The user's handle on a tensor of a Fusion: its shape and transforms. Ops (ops.ts) make new TensorViews. The methods
 * here place this one in loops, devices and memory.
 */
import { requireOneOf } from "../../diagnostics/arguments.ts";
import type { DType } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { type Call, callOn, type CallArgument, reject, resolveAxis } from "../ops/call.ts";
import { extentText, requireFactor } from "./extent.ts";
import { DeviceMesh } from "../device-mesh.ts";
import { type MemoryType, type Tensor, type TensorId, withoutReductions } from "../domain.ts";
import { markAnnotation, nameTensor, replaceTensor } from "./fusion-builder.ts";
import { printTensor } from "../print-tensor.ts";
import type { Scalar } from "../scalar/scalar.ts";
import { mergeAxes, setAllocation, setMesh, splitAxis } from "../transforms.ts";
import { internals, type TensorHandle, type TensorInternals, tensorOf } from "./handle.ts";
import { IterDomain } from "./iter-domain.ts";

const memoryTypes = ["local", "global", "symmetric"] as const satisfies readonly MemoryType[];

export interface SplitOptions {
  /** If true (the default), `factor` is the extent of the inner axis; otherwise of the outer. */
  readonly inner?: boolean;
}

/** A tensor of a Fusion and its transforms: mesh, parallel types of its axes, splits and merges, order in memory. */
export class TensorView implements TensorHandle {
  readonly [internals]: TensorInternals;

  /** Made by `fusion.input()` and by ops. */
  constructor(handle: TensorInternals) {
    this[internals] = handle;
  }

  /** The printed number: T<id>. */
  get id(): TensorId {
    return this[internals].id;
  }

  get dtype(): DType {
    return this.data().dtype;
  }

  get memoryType(): MemoryType {
    return this.data().memory;
  }

  get mesh(): DeviceMesh | null {
    return this.data().mesh;
  }

  /** The number of axes at run time, which axis numbers of ops refer to. */
  get rank(): number {
    return withoutReductions(this.data().domain.logical).length;
  }

  /** The number of axes of the loop domain, including reduced ones, which `axis(i)` refers to. */
  get nDims(): number {
    return this.data().domain.loop.length;
  }

  /** The extents of the axes at run time, outermost first. */
  get extents(): readonly Scalar[] {
    return withoutReductions(this.data().domain.logical).map((axis) => axis.extent);
  }

  /** Axis `i` of the loop domain; a negative `i` counts from the end. Throws `axis-out-of-range`. */
  axis(i: number): IterDomain {
    const { loop } = this.data().domain;
    return new IterDomain(this, at(loop, resolveAxis(i, loop.length, this.#call("axis", i))));
  }

  /**
   * Splits axis `axis` of the loop domain in two, outer before inner. Parts have ceil(extent / parts) elements; later
   * ones may be shorter or empty. Throws `axis-out-of-range`, `bad-extent`, `bad-argument` (a parallelized axis).
   */
  split(axis: number, factor: number, { inner = true }: SplitOptions = {}): this {
    return this.#split("split", axis, factor, inner);
  }

  /**
   * Splits axis `axis` of the loop domain into `parts` parts and returns the axis of the parts, the outer one. Parts
   * have ceil(extent / parts) elements; later ones may be shorter or empty. Counts axes as `split` does.
   * Throws `axis-out-of-range`, `bad-extent`, `bad-argument` (a parallelized axis).
   */
  outerSplit(axis: number, parts: number): IterDomain {
    this.#split("outerSplit", axis, parts, false);
    const { loop } = this.data().domain;
    // The inner axis stands behind the outer one, and a negative number counts from the end.
    return new IterDomain(this, at(loop, axis < 0 ? loop.length + axis - 1 : axis));
  }

  /** Merges axis `axis` of the loop domain with the one after it. Throws `axis-out-of-range`, `bad-argument`. */
  merge(axis: number): this {
    const tensor = this.data();
    const { builder } = this[internals];
    const place = this.#call("merge", axis);
    const position = resolveAxis(axis, tensor.domain.loop.length, place);
    if (position + 1 === tensor.domain.loop.length) {
      reject(place, "axis-out-of-range", "merge takes an axis and the one after it", {
        found: `axis ${position}, the last of ${tensor.domain.loop.length}`,
        expected: "an axis that another one follows",
        help: "name the outer of the two axes",
      });
    }
    replaceTensor(builder, mergeAxes(tensor, position, builder.iterDomainCount, place));
    markAnnotation(builder, this.id, `merge(${axis})`);
    builder.iterDomainCount += 1;
    return this;
  }

  /**
   * Sets the order in memory, outermost axis first. `axes` lists all axes of the loop domain, as handles or as numbers
   * of `axis(i)`, or handles of all axes of the logical domain. Reduced axes may be omitted.
   * Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`.
   */
  setAllocationDomain(axes: readonly (IterDomain | number)[]): this {
    const { loop } = this.data().domain;
    const place = this.#call("setAllocationDomain", axes);
    const ids = axes.map((axis) =>
      typeof axis === "number" ? at(loop, resolveAxis(axis, loop.length, place)).id : axis.id,
    );
    replaceTensor(this[internals].builder, setAllocation(this.data(), ids, place));
    markAnnotation(this[internals].builder, this.id, "setAllocationDomain");
    return this;
  }

  /** Puts the tensor on the devices of `mesh`. Throws `mesh-axis-missing`, `size-contradicts-mesh`, `bad-argument`. */
  setDeviceMesh(mesh: DeviceMesh): this {
    const place = this.#call("setDeviceMesh", { code: String(mesh) });
    if (!(mesh instanceof DeviceMesh)) {
      reject(place, "bad-argument", "setDeviceMesh takes a DeviceMesh", {
        found: typeof mesh,
        expected: "a DeviceMesh",
        help: "pass DeviceMesh.range(devices) or new DeviceMesh([0, 1])",
      });
    }
    replaceTensor(this[internals].builder, setMesh(this.data(), mesh, place));
    markAnnotation(this[internals].builder, this.id, "setDeviceMesh");
    return this;
  }

  /** Sets the memory type. `symmetric` memory is accessible to all devices of the mesh. Throws `bad-argument`. */
  setMemoryType(memory: MemoryType): this {
    requireOneOf(memoryTypes, memory, "a memory type", this.#call("setMemoryType", String(memory)));
    replaceTensor(this[internals].builder, { ...this.data(), memory });
    return this;
  }

  /**
   * Names the tensor for messages, comments in dumps, traces and reports: a letter or `_`, then letters, digits and
   * `_ . / -`. Names of other forms, such as `T3`, and names that another tensor has, throw `bad-argument`.
   */
  named(name: string): this {
    const { builder, id } = this[internals];
    const place = this.#call("named", String(name));
    if (typeof name !== "string" || !/^(?!T\d+$)[A-Za-z_][\w./-]{0,63}$/u.test(name)) {
      reject(place, "bad-argument", "a tensor's name has another form", {
        found: typeof name === "string" ? JSON.stringify(name) : typeof name,
        expected: "a letter or _, then up to 63 letters, digits and _ . / -, and not a number such as T3",
        help: "choose a name of this form, such as hidden or layer0/hidden",
      });
    }
    const other = builder.names.get(name);
    if (other !== undefined && other !== id) {
      reject(place, "bad-argument", `T${other} already has the name ${name}`, {
        found: `the name ${name} for T${other} and T${id}`,
        expected: "each name once in a program",
        help: `choose another name, such as ${name}2`,
      });
    }
    nameTensor(builder, this.data(), name);
    return this;
  }

  get name(): string | null {
    return this.data().origin?.name ?? null;
  }

  /** The tensor as data, as it is now. */
  data(): Tensor {
    return tensorOf(this);
  }

  /** nvFuser's text: `T2_g_float[iStreamIdx6{i0}, iS7{i6}, rS10{i4}] (DeviceMesh{0 1})`. */
  toString(): string {
    return printTensor(this.data());
  }

  #split(method: "split" | "outerSplit", axis: number, factor: number, inner: boolean): this {
    const tensor = this.data();
    const { builder } = this[internals];
    const place = this.#call(
      method,
      axis,
      { code: extentText(factor) },
      ...(method === "split" && !inner ? [{ code: "{ inner: false }" }] : []),
    );
    const position = resolveAxis(axis, tensor.domain.loop.length, place);
    requireFactor(factor, place);
    replaceTensor(builder, splitAxis(tensor, position, factor, inner, builder.iterDomainCount, place));
    markAnnotation(builder, this.id, `${method}(${axis}, ${factor})`);
    builder.iterDomainCount += 2;
    return this;
  }

  #call(method: string, ...args: readonly CallArgument[]): Call {
    return callOn(this[internals].builder.tensors, `T${this.id}.${method}`, () => args);
  }
}
