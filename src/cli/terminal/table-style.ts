/** Tables without lines: columns are two spaces apart, so that tables read and paste as plain text. */
const none = "";

export const plainBorders = {
  chars: {
    top: none,
    "top-mid": none,
    "top-left": none,
    "top-right": none,
    bottom: none,
    "bottom-mid": none,
    "bottom-left": none,
    "bottom-right": none,
    left: none,
    "left-mid": none,
    mid: none,
    "mid-mid": none,
    right: none,
    "right-mid": none,
    middle: "  ",
  },
  style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
};

/** The lines of a table without trailing blanks. */
export function trimmedLines(table: string): readonly string[] {
  return table.split("\n").map((line) => line.trimEnd());
}
