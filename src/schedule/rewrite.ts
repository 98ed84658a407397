/** A schedule rewrite: a pure function from a Program to an equivalent Program. docs/schedules.md has a section on each. */
import type { Program } from "../commands/program.ts";
import { createDraftReader, type DraftReader } from "./draft/draft-reader.ts";
import { changesRanks, type Edit, editRanks } from "./draft/edit-ranks.ts";

export interface Rewrite<Choice> {
  /** Returns the same object if it has nothing to change. `reader` keeps what other rewrites have read. */
  readonly run: (program: Program, choice: Choice, reader?: DraftReader) => Program;
  /** Whether `run` would change something. */
  readonly applies: (program: Program, choice: Choice, reader?: DraftReader) => boolean;
}

/** A rewrite that edits drafts. `start` makes the edit of one run, which is called for each rank in order. */
export function draftRewrite<Choice>(start: (choice: Choice) => Edit): Rewrite<Choice> {
  return {
    run: (program, choice, reader = createDraftReader()) => editRanks(program, reader, start(choice)),
    applies: (program, choice, reader = createDraftReader()) => changesRanks(program, reader, start(choice)),
  };
}

/** A rewrite that changes commands without their drafts, which costs little, or that depends on all drafts. */
export function programRewrite<Choice>(run: Rewrite<Choice>["run"]): Rewrite<Choice> {
  return { run, applies: (...given) => run(...given) !== given[0] };
}
