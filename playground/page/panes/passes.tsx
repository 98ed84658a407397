/** The passes as tabs, in order; the chosen one as a diff. Passes without a change are grey. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { sentences } from "virtual:passes";
import type { PassText } from "../../compiler/parts.ts";
import { hunks, sideBySide } from "../../model/side-by-side.ts";
import { useStore } from "../hooks.ts";
import type { PageProps } from "../props.ts";
import { Empty } from "./empty.tsx";
import { RankPicker } from "./rank-picker.tsx";
import { SideBySide } from "./side-by-side.tsx";

export function PassesPane({ store }: PageProps): JSX.Element {
  const { results } = useStore(store);
  const { lowered } = results;
  const [chosen, setChosen] = useState<string | null>(null);
  const [showAll, setShowAll] = useState(false);
  const passes = lowered?.passes ?? [];
  const index = Math.max(
    0,
    passes.findIndex(({ name }) => name === (chosen ?? passes.find(({ changed }, i) => changed && i > 0)?.name)),
  );
  const [before, after] = [passes[index - 1] ?? null, passes[index] ?? null];
  if (lowered === null) return <Empty results={results} />;
  if (after === null) return <p class="empty">Host programs are lowered already, so no pass runs.</p>;
  return (
    <>
      <div class="toolbar">
        <RankPicker store={store} />
        <label class="picker">
          <input
            type="checkbox"
            checked={showAll}
            onChange={({ currentTarget }) => {
              setShowAll(currentTarget.checked);
            }}
          />
          unchanged lines
        </label>
      </div>
      <ol class="passes">
        {passes.map(({ name, changed, milliseconds }, i) => (
          <li key={name}>
            <button
              type="button"
              class={changed ? "changed" : "unchanged"}
              aria-pressed={i === index}
              title={changed ? `${milliseconds.toFixed(2)} ms` : "no change"}
              onClick={() => {
                setChosen(name);
              }}
            >
              {name}
            </button>
          </li>
        ))}
      </ol>
      <p class="hint keys">
        {after.name === "input" ? "The Fusion as the program built it." : (sentences[after.name] ?? "")}
        {!after.changed && " It changes nothing here."}
      </p>
      <Difference before={before} after={after} context={showAll ? Infinity : 4} />
    </>
  );
}

interface DifferenceProps {
  readonly before: PassText | null;
  readonly after: PassText;
  readonly context: number;
}

function Difference({ before, after, context }: DifferenceProps): JSX.Element {
  const [left, right] = [before?.text ?? after.text, after.text];
  const parts = useMemo(() => hunks(sideBySide(left, right), context), [left, right, context]);
  if (before !== null && left === right) return <p class="empty">{after.name} changes nothing in this program.</p>;
  if (before === null)
    return (
      <pre class="listing" tabIndex={0}>
        {after.text}
      </pre>
    );
  return <SideBySide titles={[before.name, after.name]} parts={parts} />;
}
