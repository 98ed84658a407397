/** A guided tour: from a pipeline that overlaps, over a missing Wait, to its repair. Steps change the page as a user would. */
import type { HostText } from "../compiler/parts.ts";
import type { Change, PaneName } from "./state.ts";

export interface TourStep {
  readonly title: string;
  readonly text: string;
  readonly pane: PaneName;
  /** What the step does to the shown host program; none by default. */
  readonly changes?: (host: HostText) => readonly Change[];
}

const waitText = "Wait Communication";

export const tour: readonly TourStep[] = [
  {
    title: "A sharded matmul",
    text: "The rows of x lie on four devices, so the matmul needs all of x. The last lines of the program cut the rows into S chunks and put the chunks on streams. Each card is a tensor: colors are devices, c0 to c7 are chunks.",
    pane: "fusion",
  },
  {
    title: "The host program",
    text: "This is what the host of each rank issues. The second loop takes one chunk at a time, on one worker stream after the other: gather the chunk (Communication), wait for it (Wait), multiply it (linear). Point at a line to see where it comes from.",
    pane: "host",
  },
  {
    title: "Why it overlaps",
    text: "While one worker multiplies chunk i, the library gathers chunk i + 1: blue GEMMs run above orange gathers. The first gather has nothing to hide under, and each later one takes a little longer than a GEMM; these times are shaded. The table says what else costs time.",
    pane: "timeline",
  },
  {
    title: "Break it",
    text: "The Wait is gone now. Nothing makes the matmul come after the gather that writes its input, and the verifier says which two commands race, and for which bytes. Choose Replay step by step to see the matmul read a chunk that has not arrived, then compute at the program's own sizes to see the wrong output.",
    pane: "host",
    changes: (host) => edit(host, (lines) => lines.filter((line) => !line.includes(waitText))),
  },
  {
    title: "Read the repair",
    text: "The green line names the statement that is missing and where it belongs. It was not guessed: with it, the program of all ranks was recorded and verified again. Repair puts it back, and so does Next.",
    pane: "host",
  },
  {
    title: "Your turn",
    text: "The program verifies again. Change S or the number of devices on the left, see Curves for the best number of chunks, delete a Synchronize, or open another example.",
    pane: "host",
    changes: () => [{ kind: "unedit" }],
  },
];

function edit({ ranks, lines }: HostText, change: (lines: readonly string[]) => readonly string[]): readonly Change[] {
  const text = change(lines.map((line) => line.text)).join("\n");
  return [{ kind: "edit", rank: ranks[0] ?? 0, text }];
}
