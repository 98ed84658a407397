/** Controls of a program's devices, parameters, machine and options, made from the schema of options. */
import type { JSX } from "preact";
import { profileNames } from "virtual:profiles";
import { type OptionGroup, optionGroups, type OptionName, optionNames, optionRow } from "../../src/compile/options.ts";
import { usualDevices } from "../model/inputs.ts";
import type { State } from "../model/state.ts";
import { factorOf, mostSteps, type Rate, rates, stepOf, withStep } from "../model/what-if.ts";
import { useStore } from "./hooks.ts";
import { chooseFile } from "./open-file.ts";
import type { Store } from "./store.ts";

/** Options of a file, a run or an output, which a page has no use for, and those that have a place of their own. */
const elsewhere: ReadonlySet<OptionName> = new Set([
  "devices",
  "set",
  "reference",
  "timeout",
  "rank",
  "profile",
  "whatIf",
  "schedule",
]);
const groups: readonly OptionGroup[] = ["program", "lowering", "schedule"];

export function Controls({ store }: { readonly store: Store }): JSX.Element {
  const { history, results } = useStore(store);
  const state = history.present;
  return (
    <div class="controls">
      <div class="fields main">
        <Field label="devices" help={optionRow("devices").help}>
          <input
            type="number"
            min="1"
            max="64"
            value={state.options["devices"] ?? (state.document.kind === "program" ? String(usualDevices) : "")}
            onInput={({ currentTarget }) => {
              store.change({ kind: "option", name: "devices", text: currentTarget.value });
            }}
          />
        </Field>
        <MachineField store={store} state={state} />
        {Object.entries(results.defaults).map(([name, usual]) => (
          <Field
            key={name}
            label={name}
            instead={[undefined, String(usual)].includes(state.params[name]) ? null : `program: ${usual}`}
            help={`parameter ${name} of the program; ${usual} if it is cleared`}
          >
            <input
              type="text"
              inputMode={typeof usual === "number" ? "numeric" : "text"}
              placeholder={String(usual)}
              value={state.params[name] ?? ""}
              class={state.params[name] === undefined ? "" : "given"}
              onInput={({ currentTarget }) => {
                store.change({ kind: "param", name, text: currentTarget.value });
              }}
            />
          </Field>
        ))}
      </div>
      <div class="groups">
        <MachineFields store={store} state={state} />
        {groups.map((group) => (
          <OptionGroupFields key={group} store={store} state={state} group={group} />
        ))}
      </div>
    </div>
  );
}

function OptionGroupFields({
  store,
  state,
  group,
}: {
  readonly store: Store;
  readonly state: State;
  readonly group: OptionGroup;
}): JSX.Element {
  const names = optionNames.filter((name) => {
    const { group: own, commands } = optionRow(name);
    return (
      (own === group || (group === "program" && name === "on")) && !elsewhere.has(name) && commands.includes("lower")
    );
  });
  const given = names.filter((name) => state.options[name] !== undefined && name !== "on");
  return (
    <details class="group" open={given.length > 0}>
      <summary>
        {group === "program" ? "Target and sizes" : optionGroups[group]}
        {given.length > 0 && <span class="count">{given.length} set</span>}
      </summary>
      <div class="fields">
        {names.map((name) => (
          <OptionField key={name} store={store} name={name} text={state.options[name] ?? null} />
        ))}
      </div>
    </details>
  );
}

interface OptionFieldProps {
  readonly store: Store;
  readonly name: OptionName;
  /** Null if the option is not given. */
  readonly text: string | null;
}

function OptionField({ store, name, text }: OptionFieldProps): JSX.Element {
  const row = optionRow(name);
  const set = (next: string): void => {
    store.change({ kind: "option", name, text: next });
  };
  const bad = text !== null && row.kind.read(text) === undefined;
  return (
    <Field label={name} help={row.help} problem={bad ? `expected ${row.kind.expected}` : null}>
      {row.kind.argument === null ? (
        <input
          type="checkbox"
          checked={text === null ? row.default === true : text === "true"}
          onChange={({ currentTarget: { checked } }) => {
            set(checked === (row.default === true) ? "" : String(checked));
          }}
        />
      ) : "choices" in row.kind && Array.isArray(row.kind.choices) ? (
        <select
          value={text ?? ""}
          class={text === null ? "" : "given"}
          onChange={({ currentTarget }) => {
            set(currentTarget.value);
          }}
        >
          <option value="">{typeof row.default === "string" ? row.default : "default"}</option>
          {row.kind.choices
            .map(String)
            .filter((choice) => choice !== row.default)
            .map((choice) => (
              <option key={choice} value={choice}>
                {choice}
              </option>
            ))}
        </select>
      ) : (
        <input
          type="text"
          value={text ?? ""}
          aria-invalid={bad}
          class={text === null ? "" : "given"}
          placeholder={usualText(row.default) ?? `e.g. ${row.kind.example}`}
          onInput={({ currentTarget }) => {
            set(currentTarget.value);
          }}
        />
      )}
    </Field>
  );
}

function usualText(value: unknown): string | null {
  return typeof value === "number" || (typeof value === "string" && value !== "") ? String(value) : null;
}

interface FieldProps {
  readonly label: string;
  readonly help: string;
  /** What the program has in place of the given value. */
  readonly instead?: string | null;
  readonly problem?: string | null;
  readonly children: JSX.Element;
}

function Field({ label, help, instead = null, problem = null, children }: FieldProps): JSX.Element {
  return (
    <div class="field" title={help}>
      <label>
        <span class="title">
          <span class="name">{label}</span>
          {instead !== null && <small>{instead}</small>}
        </span>
        {children}
      </label>
      {problem !== null && <span class="problem">{problem}</span>}
      <span class="help">{help}</span>
    </div>
  );
}

/** Shipped profiles, and one from a file. */
function MachineField({ store, state }: { readonly store: Store; readonly state: State }): JSX.Element {
  return (
    <Field label="machine" help="profile of the machine that the prediction is for">
      <select
        value={state.customProfile === null ? state.profile : "custom"}
        onChange={({ currentTarget: { value } }) => {
          if (value === "file") chooseFile(".json", store);
          else store.change({ kind: "profile", name: value, text: null });
        }}
      >
        {profileNames.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
        {state.customProfile !== null && <option value="custom">{state.profile}</option>}
        <option value="file">from a file …</option>
      </select>
    </Field>
  );
}

const rateHelp: { readonly [R in Rate]: string } = {
  gemm: "rate of GEMMs, as a factor on the machine's",
  link: "rate of links between devices, as a factor on the machine's; latencies stay",
};

/** What changes the prediction and the replay, but not the program. */
function MachineFields({ store, state }: { readonly store: Store; readonly state: State }): JSX.Element {
  const { whatIf, seed } = state.options;
  const given = [whatIf, seed].filter((text) => text !== undefined).length;
  return (
    <details class="group" open={given > 0}>
      <summary>
        Rates and seed
        {given > 0 && <span class="count">{given} set</span>}
      </summary>
      <div class="fields">
        {rates.map((rate) => {
          const step = stepOf(whatIf, rate);
          return (
            <Field key={rate} label={`${rate} ${factorOf(step)}×`} help={rateHelp[rate]}>
              <input
                type="range"
                min={-mostSteps}
                max={mostSteps}
                value={step}
                aria-label={`${rate} rate`}
                aria-valuetext={`${factorOf(step)} times`}
                onInput={({ currentTarget }) => {
                  const text = withStep(whatIf, rate, Number(currentTarget.value));
                  store.change({ kind: "option", name: "whatIf", text });
                }}
              />
            </Field>
          );
        })}
        <OptionField store={store} name="seed" text={seed ?? null} />
      </div>
    </details>
  );
}
