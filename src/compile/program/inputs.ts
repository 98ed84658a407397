/** The inputs of a run, random or from files, and whether they fit into memory, which is checked before anything else. */
import { elementCount, type Tensor } from "../../numerics/tensor/host-tensor.ts";
import type { Signature } from "../lower-all.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { randomInputs, type TensorShape } from "../../oracle/random-inputs.ts";
import { at } from "../../support/invariant.ts";
import { createRandom } from "../../support/random.ts";

/**
 * Whole tensors, in the order of the program's inputs. `given`: tensors from files, by position. The others are random,
 * and do not depend on which are given. `limits` bounds those that are indices (indexLimits).
 */
export function drawInputs(
  signature: Signature,
  sizes: Sizes,
  seed: number,
  given: ReadonlyMap<number, Tensor>,
  limits: ReadonlyMap<number, number> = new Map(),
): readonly Tensor[] {
  const isWhole = given.size === signature.inputs.length;
  const random = isWhole ? [] : randomInputs(inputShapes(signature, sizes, limits), createRandom(seed), "uniform");
  return signature.inputs.map((_, i) => given.get(i) ?? at(random, i));
}

/** Inputs with special values. Integers and bools from files stay: they may be indices or masks. */
export function drawSpecialInputs(
  signature: Signature,
  sizes: Sizes,
  seed: number,
  given: ReadonlyMap<number, Tensor>,
  limits: ReadonlyMap<number, number> = new Map(),
): readonly Tensor[] {
  const special = randomInputs(inputShapes(signature, sizes, limits), createRandom(seed), "special");
  return special.map((tensor, i) => (dtypes[tensor.dtype].family === "float" ? tensor : (given.get(i) ?? tensor)));
}

function inputShapes(
  { tensors, inputs }: Signature,
  sizes: Sizes,
  limits: ReadonlyMap<number, number> = new Map(),
): readonly TensorShape[] {
  return inputs.map((id, i) => {
    const tensor = at(tensors, id);
    const limit = limits.get(i);
    return { dtype: tensor.dtype, shape: shapeOf(tensor, sizes), ...(limit === undefined ? {} : { limit }) };
  });
}

/** On the CPU all ranks share one memory with 32-bit addresses. Every element of an input lies on at least one rank. */
const addressableBytes = 2 ** 32;

/** Throws `memory-limit`. */
export function requireInputMemory(signature: Signature, sizes: Sizes): void {
  const inputs = inputShapes(signature, sizes);
  const bytes = inputs.reduce((sum, { dtype, shape }) => sum + elementCount(shape) * dtypes[dtype].bytes, 0);
  if (bytes <= addressableBytes) return;
  fail("memory-limit", "the inputs need more memory than the CPU back end can address", {
    place: { kind: "option", text: "sizes (--set, --sizes)" },
    found: `${(bytes / 2 ** 30).toFixed(2)} GiB: ${inputs.map(({ dtype, shape }) => `${dtype} [${shape.join(", ")}]`).join(", ")}`,
    expected: "at most 4 GiB for all ranks together",
    help: "use smaller sizes",
  });
}
