/**
 * The user's handle on one axis of a tensor. Splits and merges of other axes do not affect it. After its own axis is
 * split or merged, the handle can be read but not parallelized.
 */
import { type Call, reject } from "../ops/call.ts";
import type { IterDomain as IterDomainData, IterDomainId, IterType, ParallelType } from "../domain.ts";
import type { DimensionName } from "../parallel-type.ts";
import { markAnnotation, replaceTensor } from "./fusion-builder.ts";
import { printIterDomain } from "../print-tensor.ts";
import { parallelizeAxis, parallelTypeOf, withNamedMesh } from "../transforms.ts";
import type { Scalar } from "../scalar/scalar.ts";
import { axisOwner, internals, type TensorHandle, tensorOf } from "./handle.ts";

/** One axis of a tensor: its extent and parallel type. Made by `tensor.axis(i)`. */
export class IterDomain {
  readonly #tensor: TensorHandle;
  readonly #made: IterDomainData;

  /** Made by `tensorView.axis(i)`. */
  constructor(tensor: TensorHandle, axis: IterDomainData) {
    this.#tensor = tensor;
    this.#made = axis;
  }

  get [axisOwner](): TensorHandle {
    return this.#tensor;
  }

  /** The printed number. */
  get id(): IterDomainId {
    return this.#made.id;
  }

  get extent(): Scalar {
    return this.data().extent;
  }

  get iterType(): IterType {
    return this.data().iterType;
  }

  get parallelType(): ParallelType {
    return this.data().parallelType;
  }

  /**
   * Sets the parallel type: DIDx, DIDy, DIDz, DIDw, DIDv or DIDu (one device per index, along that dimension of the
   * mesh, innermost first), Stream (one iteration of a host loop over streams per index), or Serial (neither). A name
   * of a dimension of the tensor's mesh stands for its DID type; a tensor without a mesh gets the one that other tensors
   * of the program have with this name.
   * Throws `did-repeated`, `stream-repeated`, `mesh-axis-missing`, `size-contradicts-mesh`, `bad-argument`.
   */
  parallelize(type: ParallelType | DimensionName): this {
    const { tensors } = this.#tensor[internals].builder;
    const tensor = withNamedMesh(tensorOf(this.#tensor), type, tensors);
    const position = tensor.domain.loop.findIndex((axis) => axis.id === this.id);
    const name = position < 0 ? this.toString() : `T${tensor.id}.axis(${position})`;
    const place: Call = { kind: "call", text: `${name}.parallelize(${JSON.stringify(type)})`, tensors };
    const parallelType = parallelTypeOf(type, tensor, place);
    if (position < 0) {
      reject(place, "bad-argument", "the axis was split or merged", {
        found: printIterDomain(this.data()),
        expected: "an axis of the loop domain",
        help: "take the new axis with axis(i)",
      });
    }
    const { builder } = this.#tensor[internals];
    replaceTensor(builder, parallelizeAxis(tensor, this.id, parallelType, place));
    markAnnotation(builder, tensor.id, `axis(${position}).parallelize(${JSON.stringify(type)})`);
    return this;
  }

  /** The axis as data. After a split or merge of this axis: the axis as it was before. */
  data(): IterDomainData {
    const { logical, loop } = tensorOf(this.#tensor).domain;
    const isThis = (axis: IterDomainData): boolean => axis.id === this.id;
    return loop.find(isThis) ?? logical.find(isThis) ?? this.#made;
  }

  /** nvFuser's text: `iStreamIdx6{i0}`. */
  toString(): string {
    return printIterDomain(this.data());
  }
}
