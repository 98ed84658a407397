/** A rank's recorded commands, as they run. */
import type { JSX } from "preact";
import type { PageProps } from "../props.ts";
import { useLinked, useStore } from "../hooks.ts";
import { Empty } from "./empty.tsx";
import { RankPicker, shownRank } from "./rank-picker.tsx";

/** More rows make the page slow; the command line prints them all. */
const mostRows = 3000;

export function CommandsPane({ store, pointing }: PageProps): JSX.Element {
  const { results } = useStore(store);
  const { verdict } = results;
  const linked = useLinked(pointing);
  const rank = shownRank(store);
  const list = verdict?.commands[rank] ?? null;
  if (list === null) return <Empty results={results} />;
  return (
    <>
      <div class="toolbar">
        <RankPicker store={store} />
        <span class="hint">
          {list.rows.length} commands on {list.streams.length} streams
          {list.rows.length > mostRows ? `; the first ${mostRows} are shown` : ""}
        </span>
      </div>
      <table
        class="commands"
        onMouseLeave={() => {
          pointing.point(null);
        }}
      >
        <thead>
          <tr>
            <th scope="col">#</th>
            <th scope="col">stream</th>
            <th scope="col">command</th>
            <th scope="col">operands</th>
            <th scope="col">line</th>
          </tr>
        </thead>
        <tbody>
          {list.rows.slice(0, mostRows).map(({ stream, kind, text, line, iteration }, index) => (
            <tr
              key={index}
              class={linked.hasCommand(rank, index) ? "linked" : ""}
              onMouseEnter={() => {
                pointing.point({ kind: "command", rank, command: index });
              }}
            >
              <td class="number">{index}</td>
              <td>
                <span class={`stream stream-${stream % 8}`}>{list.streams[stream]}</span>
              </td>
              <td class={`kind ${kind}`}>{kind}</td>
              <td class="operands">
                {text}
                {iteration.length > 0 && <span class="iteration"> i = {iteration.join(", ")}</span>}
              </td>
              <td class="number">{line === 0 ? "" : line}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
