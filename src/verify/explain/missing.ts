/** The orders and waits that a Program lacks, and insertions as the steps of a repair. */
import { commandDetails } from "../../commands/command-text.ts";
import type { Program } from "../../commands/program.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import { intendedOrder } from "./conflict-finding.ts";
import { findProblems } from "../check/find-problems.ts";
import type { RepairStep } from "../finding.ts";
import { createGraph } from "../order/graph.ts";
import type { Insertion } from "./insert-order.ts";
import { isWarning, type Problem } from "../check/problem.ts";
import { createRegionTable } from "../check/region-table.ts";
import type { Missing } from "./repair.ts";

/** Null if a problem remains that no order or wait repairs. */
export function missingIn(program: Program): Missing | null {
  const graph = createGraph(program);
  const table = createRegionTable(graph);
  const problems = findProblems(graph, table);
  const orders: (readonly [number, number])[] = [];
  const waits: Missing["waits"][number][] = [];
  const add = (problem: Problem): boolean => {
    switch (problem.kind) {
      case "conflict":
        orders.push(intendedOrder(graph, table, problem));
        return true;
      case "slotMisuse":
        orders.push([problem.before, problem.next]);
        return true;
      case "unbalancedSlot":
        for (let i = problem.waits; i < problem.signals; i++) waits.push(makeId(problem.slot));
        return problem.signals > problem.waits;
      case "needsConcurrency":
        return isWarning(problem);
      case "deadlock":
      case "unwritten":
      case "notAllocated":
      case "freed":
      case "freedTwice":
      case "allocatedTwice":
      case "bytesInUse":
      case "eventNotRecorded":
      case "eventRecordedTwice":
      case "outsideBuffer":
      case "overlappingOperands":
        return false;
      default:
        return unreachable(problem);
    }
  };
  return problems.every(add) ? { orders, waits } : null;
}

export function stepsOf(program: Program, insertions: readonly Insertion[]): readonly RepairStep[] {
  return insertions.map(({ rank, before, command }) => {
    const list = at(program.ranks, rank);
    const details = commandDetails({ ...list, commands: [command], transferOf: [null] }, 0);
    const text = `${command.kind} ${details}`;
    const follower = list.commands[before];
    const place =
      follower === undefined
        ? "at the end of its list"
        : `before command ${before} (${follower.kind} ${commandDetails(list, before)})`;
    const name = list.streams.find(({ id }) => id === command.stream)?.name ?? "";
    return {
      rank,
      stream: command.stream,
      before,
      command: text,
      text: `insert ${text} on rank ${rank}, stream ${command.stream} (${name}), ${place}`,
    };
  });
}
