/**
 * Reductions for groups of neighbours, each element in the order of numerics/sum-order.ts, with one accumulator per
 * level and group. A counter per level holds the number of terms that its block still lacks.
 */
import { sumBlock } from "../../numerics/sum-order.ts";
import { at } from "../../support/invariant.ts";
import { type Access, accumulatorLevels, type Nest } from "../nests/nest.ts";
import { advance, get, number, set, whenZero } from "../../support/wasm/instructions.ts";
import { evaluateLanes } from "./lane-expressions.ts";
import { place, type RowGroup, storeExpression, type Target, valueOf, writeStep } from "./lane-groups.ts";
import { stepBytes, writeLoop, writeLoops } from "./lane-loops.ts";
import { type Lanes, partsOfType, splatConstant } from "./lanes.ts";

export function writeReduction(
  target: Target,
  reduction: NonNullable<Nest["reduction"]>,
  groups: readonly RowGroup[],
): void {
  const { nest, writer, pointers } = target;
  const { type, identity, combine, finish } = reduction;
  const levels = Array.from({ length: accumulatorLevels(nest) }, (_, level) => level);
  const identities = (): Lanes =>
    Array.from({ length: partsOfType[type] }, () => writer.keep(splatConstant(type, identity)));
  const sums = groups.map((group) => ({ group, sum: levels.map(identities) }));
  const assign = (to: Lanes, from: Lanes): void => {
    for (const [part, local] of to.entries()) writer.emit(set(local, get(at(from, part))));
  };
  const counters = levels.slice(1).map(() => {
    const counter = writer.local("i32");
    writer.emit(set(counter, number(sumBlock)));
    return counter;
  });
  /** Adds the accumulators of a level to those of the next. */
  const add = (level: number): void => {
    for (const { sum } of sums) {
      const [part, whole] = [at(sum, level), at(sum, level + 1)];
      writer.block(() => {
        assign(whole, evaluateLanes(writer, combine, [whole, part]));
      });
    }
  };
  /** A block of the level is full: its sum is one more term of the next level. */
  const carry = (level: number): void => {
    if (level + 1 >= levels.length) return;
    add(level);
    for (const { sum } of sums) {
      for (const local of at(sum, level)) writer.emit(set(local, splatConstant(type, identity)));
    }
    count(level + 1);
  };
  const count = (level: number): void => {
    const counter = counters[level];
    if (counter === undefined) return;
    writer.emit(advance(counter, -1));
    writer.emit(
      whenZero(
        counter,
        writer.collect(() => {
          writer.emit(set(counter, number(sumBlock)));
          carry(level);
        }),
      ),
    );
  };
  const accumulate = (): void => {
    for (const { group, sum } of sums) {
      writer.block(() => {
        const values = new Map<number, Lanes>();
        for (const i of nest.body.keys()) writeStep(target, values, i, group);
        const next = evaluateLanes(writer, combine, [at(sum, 0), valueOf(values, nest.body.length - 1)]);
        assign(at(sum, 0), next);
      });
    }
  };
  const outer = nest.reducedLoops.slice(0, -1);
  const inner = nest.reducedLoops.at(-1);
  if (levels.length > 1 && inner !== undefined && (outer.length === 0 || inner.extent % sumBlock === 0)) {
    // Blocks do not cross the innermost loop, so single terms need no counter.
    const step = (access: Access): number => stepBytes(access, inner);
    const blocks = Math.floor(inner.extent / sumBlock);
    writeLoops(writer, pointers, outer, () => {
      const blockStep = (access: Access): number => sumBlock * step(access);
      writeLoop(writer, pointers, blocks, blockStep, () => {
        writeLoop(writer, pointers, sumBlock, step, accumulate);
        carry(0);
      });
      const rest = inner.extent - blocks * sumBlock;
      if (rest === 0) return;
      for (const [access, pointer] of pointers) writer.emit(advance(pointer, blocks * blockStep(access)));
      writeLoop(writer, pointers, rest, step, accumulate);
      for (const [access, pointer] of pointers) writer.emit(advance(pointer, -blocks * blockStep(access)));
    });
  } else {
    writeLoops(writer, pointers, nest.reducedLoops, () => {
      accumulate();
      count(0);
    });
  }
  for (const level of levels.slice(1)) add(level - 1);
  for (const { group, sum } of sums) {
    const last = at(sum, sum.length - 1);
    writer.block(() => storeExpression(writer, place(target, nest.target, group), finish, [last]));
  }
}
