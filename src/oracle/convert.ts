/** Tensors into the oracle and out of it. */
import { emptyTensor, type Tensor } from "../numerics/tensor/host-tensor.ts";
import { elementsOf } from "../numerics/tensor/storage.ts";
import type { Value } from "./value.ts";

/** An input: exact. */
export function fromTensor({ dtype, shape, data }: Tensor): Value {
  const storage = elementsOf(dtype, data);
  const elements = Array.from({ length: storage.length }, (_, i) => storage.get(i));
  return { dtype, shape, elements, bounds: new Float64Array(elements.length) };
}

export function toTensor({ dtype, shape, elements }: Value): Tensor {
  const tensor = emptyTensor(dtype, shape);
  const storage = elementsOf(tensor.dtype, tensor.data);
  elements.forEach((element, i) => {
    storage.set(i, element);
  });
  return tensor;
}
