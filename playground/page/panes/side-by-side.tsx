/** Two texts side by side, with what changed marked. */
import type { JSX } from "preact";
import type { Hunk } from "../../model/side-by-side.ts";

export interface SideBySideProps {
  readonly titles: readonly [string, string];
  readonly parts: readonly Hunk[];
}

export function SideBySide({ titles, parts }: SideBySideProps): JSX.Element {
  return (
    <table class="diff">
      <thead>
        <tr>
          <th scope="col">{titles[0]}</th>
          <th scope="col">{titles[1]}</th>
        </tr>
      </thead>
      <tbody>
        {parts.flatMap((part, i) =>
          part.kind === "hidden"
            ? [
                <tr key={`hidden ${i}`} class="hidden">
                  <td colSpan={2}>{part.count} unchanged lines</td>
                </tr>,
              ]
            : part.rows.map(({ kind, left, right }, j) => (
                <tr key={`${i} ${j}`} class={kind}>
                  <td class={left === null ? "none" : "left"}>{left}</td>
                  <td class={right === null ? "none" : "right"}>{right}</td>
                </tr>
              )),
        )}
      </tbody>
    </table>
  );
}
