/** Linears of 8-bit floats with scales of tensors, rows or blocks, with what tensor cores leave out of their sums. */
import { accumulatorOf, type DType, dtypes } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import { type Accumulating, linear } from "./contraction.ts";
import { accumulationError, contractionRoundings, gamma } from "./tolerance.ts";
import {
  type Bounded,
  elementAt,
  flatElement,
  makeValue,
  overflowThreshold,
  smallestRounding,
  store,
  type OracleValue,
} from "./value.ts";

/**
 * Of the sum of |x w|. Hopper's tensor cores keep about 14 bits of the products of 8-bit floats that they add at once
 * (DeepSeek-V3's technical report, section 3.3.2). The most on an H200 was 2^-12.9, of numbers spread evenly.
 */
const tensorCoreLoss = 2 ** -10;

/** With fast accumulation the whole sum loses as much in each step of 32 terms, instead of each 128 terms by themselves. */
const fastLoss = (terms: number): number => Math.max(tensorCoreLoss, (terms / 32) * 2 ** -13);

/**
 * x [.., K], weight [N, K], scales [] or [..] and [] or [N]: the sums times both scales, rounded to `to`. Devices that
 * share K round their parts to `to`, as those of a linear of that dtype. Scales of blocks: `blockScaledLinear`.
 */
export function scaledLinear(
  operands: readonly OracleValue[],
  { to, fastAccumulation }: { readonly to: DType; readonly fastAccumulation?: true },
  shape: readonly number[],
  accumulating: Accumulating,
): OracleValue {
  const [x, weight, ofX, ofWeight] = [at(operands, 0), at(operands, 1), at(operands, 2), at(operands, 3)];
  if (ofX.shape.length === x.shape.length)
    return blockScaledLinear([x, ofX], [weight, ofWeight], to, shape, accumulating);
  const sumsIn = (dtype: DType, hops: number): OracleValue =>
    linear({ ...x, dtype }, { ...weight, dtype }, null, shape, { ...accumulating, hops });
  const accumulator = accumulatorOf(to);
  const { epsilon } = dtypes[accumulator];
  const sums = sumsIn(accumulator, 0);
  const { bounds } = accumulating.hops > 0 ? sumsIn(to, accumulating.hops) : sums;
  const { blocksContractions, valuesOnly = false } = accumulating.arithmetic;
  const lost =
    blocksContractions || valuesOnly
      ? null
      : linear({ ...sizes(x), dtype: accumulator }, { ...sizes(weight), dtype: accumulator }, null, shape, {
          ...accumulating,
          hops: 0,
        });
  const loss = fastAccumulation === true ? fastLoss(x.shape.at(-1) ?? 0) : tensorCoreLoss;
  const scaleAt = (scale: OracleValue, index: readonly number[]): Bounded =>
    scale.shape.length === 0 ? { element: at(scale.elements, 0), bound: at(scale.bounds, 0) } : elementAt(scale, index);
  const batch = Math.max(weight.shape.length - 2, 0);
  return makeValue(to, shape, (index, flat) => {
    const ofColumn = [...index.slice(0, batch), ...index.slice(-1)].slice(0, ofWeight.shape.length);
    const [a, b] = [scaleAt(ofX, index.slice(0, ofX.shape.length)), scaleAt(ofWeight, ofColumn)];
    const [sum, p, q] = [Number(sums.elements[flat]), Number(a.element), Number(b.element)];
    const exact = sum * p * q;
    const bound = at(bounds, flat) + (lost === null ? 0 : loss * Number(lost.elements[flat]));
    const [most, left, right] = [Math.abs(sum) + bound, Math.abs(p) + a.bound, Math.abs(q) + b.bound];
    // Libraries may multiply the scales first: no product of two may overflow, and each may underflow.
    const largest = Math.max(most * left, most * right, left * right);
    if (largest >= overflowThreshold[accumulator]) return store(to, exact, Infinity);
    const moved = most * left * right - Math.abs(exact) + 4 * epsilon * most * left * right;
    return store(to, exact, moved + 2 * smallestRounding[accumulator] * (1 + most + left + right));
  });
}

function sizes(value: OracleValue): OracleValue {
  // Float64Array.from calls back for each element, which takes ten times as long.
  const elements = new Float64Array(value.elements.length);
  for (let i = 0; i < elements.length; i++) elements[i] = Math.abs(Number(value.elements[i]));
  return { ...value, elements };
}

/** One scale is of so many elements of K, and of as many rows of a weight whose scales are fewer than its rows. */
const scaledBlock = 128;

type WithScale = readonly [value: OracleValue, scale: OracleValue];

/**
 * The sum of what the operands stand for. A back end may scale elements, or sums of blocks: it rounds at most once per
 * factor and block more than the sum of a float linear, and any of its products may underflow.
 */
function blockScaledLinear(
  x: WithScale,
  weight: WithScale,
  to: DType,
  shape: readonly number[],
  { hops, arithmetic }: Accumulating,
): OracleValue {
  const [a, b] = [unscaled(x), unscaled(weight)];
  // The bound below has the roundings of a sum in double.
  const alone: Accumulating = { hops: 0, arithmetic: { ...arithmetic, valuesOnly: true } };
  const sums = linear(a, b, null, shape, alone);
  const magnitudes = linear(sizes(a), sizes(b), null, shape, alone);
  const accumulator = accumulatorOf(to);
  const terms = a.shape.at(-1) ?? 0;
  const { blocksContractions, valuesOnly = false } = arithmetic;
  const roundings = contractionRoundings(terms, accumulator, arithmetic) + terms / scaledBlock + 4;
  const loss = blocksContractions || valuesOnly ? 0 : tensorCoreLoss;
  const relative = accumulationError(roundings, terms, accumulator) + gamma(hops, to) + loss;
  const [ofX, ofWeight] = [peaks(x), peaks(weight)];
  const batch = Math.max(ofWeight.shape.length - 1, 0);
  // More than a block's sum of products of 8-bit floats.
  const most = 2 ** 40;
  return makeValue(to, shape, (index, flat) => {
    const spread = at(sums.bounds, flat);
    const ofColumn = [...index.slice(0, batch), ...index.slice(-1)].slice(0, ofWeight.shape.length);
    const left = Number(elementAt(ofX, index.slice(0, ofX.shape.length)).element);
    const right = Number(elementAt(ofWeight, ofColumn).element);
    const peak = Math.max(left, right);
    if (Math.max(most * peak, left * right) >= overflowThreshold[accumulator])
      return store(to, Number(sums.elements[flat]), Infinity);
    const underflow = terms * smallestRounding[accumulator] * (most + 2 ** 17 * peak) + hops * smallestRounding[to];
    const bound = spread + relative * (Number(magnitudes.elements[flat]) + spread) + underflow;
    return store(to, Number(sums.elements[flat]), bound);
  });
}

/** The scale of a block of K in a row; `index` may have more axes. */
function scaleOf([value, scale]: WithScale, index: readonly number[], block: number): Bounded {
  const rows = value.shape.length - 2;
  const isOfRows = rows >= 0 && value.shape[rows] !== scale.shape[rows];
  const lead = index.slice(0, rows + 1);
  const own = isOfRows ? lead.with(rows, Math.floor(at(lead, rows) / scaledBlock)) : lead;
  return elementAt(scale, [...own, block]);
}

/** Each element times its scale, in double. */
function unscaled(operand: WithScale): OracleValue {
  const [value] = operand;
  return makeValue("double", value.shape, (index, flat) => {
    const { element, bound } = flatElement(value, flat);
    const own = scaleOf(operand, index, Math.floor((index.at(-1) ?? 0) / scaledBlock));
    const [p, q] = [Number(element), Number(own.element)];
    return { element: p * q, bound: Math.abs(p) * own.bound + Math.abs(q) * bound + bound * own.bound };
  });
}

/** The largest scale of each row. */
function peaks(operand: WithScale): OracleValue {
  const [value, scale] = operand;
  return makeValue("double", value.shape.slice(0, -1), (index) => {
    const scales = Array.from({ length: scale.shape.at(-1) ?? 0 }, (_, block) => scaleOf(operand, index, block));
    return { element: Math.max(0, ...scales.map(({ element, bound }) => Math.abs(Number(element)) + bound)), bound: 0 };
  });
}
