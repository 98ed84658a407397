/** Lines of a printed program that highlight what belongs to them. */
import type { JSX } from "preact";
import type { LinkedLine } from "../../compiler/parts.ts";

export interface LinkedTextProps {
  readonly lines: readonly LinkedLine[];
  readonly isLinked: (line: LinkedLine, index: number) => boolean;
  readonly point: (line: LinkedLine | null) => void;
}

export function LinkedText({ lines, isLinked, point }: LinkedTextProps): JSX.Element {
  return (
    <pre
      class="listing"
      tabIndex={0}
      onMouseLeave={() => {
        point(null);
      }}
    >
      {lines.map((line, index) => (
        <span
          key={index}
          class={isLinked(line, index) ? "line linked" : "line"}
          onMouseEnter={() => {
            point(line);
          }}
        >
          {line.text === "" ? " " : line.text}
        </span>
      ))}
    </pre>
  );
}
