/** A schedule rewrite: a pure function from a Program to an equivalent Program, as a value with a name. */
import type { Program } from "../commands/program.ts";
import { createDraftReader, type DraftReader } from "./draft/draft-reader.ts";
import { changesRanks, type Edit, editRanks } from "./draft/edit-ranks.ts";

export interface Rewrite<Choice> {
  /** The name of its section in docs/schedules.md. */
  readonly name: string;
  /** Returns the same object if it has nothing to change. `reader` keeps what other rewrites have read. */
  readonly run: (program: Program, choice: Choice, reader?: DraftReader) => Program;
  /** Whether `run` would change something. */
  readonly applies: (program: Program, choice: Choice, reader?: DraftReader) => boolean;
}

/** A rewrite that edits drafts. `start` makes the edit of one run, which is called for each rank in order. */
export function draftRewrite<Choice>(name: string, start: (choice: Choice) => Edit): Rewrite<Choice> {
  return {
    name,
    run: (program, choice, reader = createDraftReader()) => editRanks(program, reader, start(choice)),
    applies: (program, choice, reader = createDraftReader()) => changesRanks(program, reader, start(choice)),
  };
}

/** A rewrite that changes commands without their drafts, which costs little. */
export function commandRewrite<Choice>(
  name: string,
  run: (program: Program, choice: Choice) => Program,
): Rewrite<Choice> {
  return { name, run, applies: (program, choice) => run(program, choice) !== program };
}
