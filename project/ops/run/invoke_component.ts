/**
 * `waft run --invoke 'greet("you")'`: calls a function of a component. In: its functions and a call in WAVE notation.
 * Out: the result as WAVE, on one line. Throws UsageError that marks the place in the call, before anything runs.
 */
import type { Context } from "@waft/engine";
import { MalformedError } from "@waft/engine/internal/errors";
import { ComponentError } from "@waft/component/internal/abi/traps";
import { signature, typeName } from "@waft/component/internal/abi/type_name";
import type { ComponentInstance } from "@waft/component/internal/component";
import type { FuncType } from "@waft/component/internal/model/types";
import { isPrintable, printWave } from "@waft/component/internal/wave/print";
import { readWaveCall, type WaveCall } from "@waft/component/internal/wave/read";
import { oneLine, UsageError } from "../../base/failure.ts";
import { nearestName } from "../../base/grammar.ts";

/** The number of functions that an error names. */
const MAX_LISTED = 40;

/** A call that can be made: its arguments have been read. */
export interface PlannedInvocation {
  readonly name: string;
  readonly type: FuncType;
  readonly args: readonly unknown[];
}

/** A result in WAVE notation, and whether it is the error case of a `result`. */
export interface InvocationResult {
  readonly lines: string[];
  readonly isError: boolean;
}

/** Reads the call `text` of one of the functions of a component, whose types `types` has by whole names. */
export function planInvocation(file: string, types: ReadonlyMap<string, FuncType>, text: string): PlannedInvocation {
  const call = atPlace(text, () => readCall(text));
  const name = findFunction(file, types, call.name);
  const type = types.get(name)!;
  const opaque = [...type.params.map((param) => param.type), type.result].find((part) => part && !isPrintable(part));
  if (opaque !== undefined) {
    throw new UsageError(`--invoke: ${oneLine(name)}: values of type ${oneLine(typeName(opaque))} have no text`);
  }
  return { name, type, args: atPlace(text, () => call.args(type)) };
}

/** A name alone is a call without arguments, as `--invoke` has it for core modules. */
function readCall(text: string): WaveCall {
  return readWaveCall(/^[^\s("'/]+$/.test(text) ? `${text}()` : text);
}

/** Adds the text and a mark below the place of an error. */
function atPlace<T>(text: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error;
    const { line = 1, column = 1 } = error.place;
    const source = oneLine(text.split("\n")[line - 1] ?? "");
    throw new UsageError(`--invoke: ${error.message}\n    ${source}\n    ${" ".repeat(column - 1)}^`);
  }
}

/** The whole name of a function, which may be given without its interface if only one interface has it. */
function findFunction(file: string, types: ReadonlyMap<string, FuncType>, name: string): string {
  if (types.has(name)) return name;
  const found = [...types.keys()].filter((whole) => whole.endsWith(`#${name}`));
  if (found.length === 1) return found[0];
  const rows = (found.length > 1 ? found : [...types.keys()]).slice(0, MAX_LISTED)
    .map((whole) => `\n    ${oneLine(whole)}: ${oneLine(signature(types.get(whole)!))}`).join("");
  if (found.length > 1) throw new UsageError(`--invoke: several interfaces of ${file} have ${name}; name one:${rows}`);
  if (rows === "") throw new UsageError(`--invoke: ${file} exports no functions`);
  const near = nearestName(name, [...types.keys()].flatMap((whole) => [whole, whole.replace(/^.*#/, "")]));
  const hint = near === undefined ? "; it exports:" : `; did you mean ${near}? It exports:`;
  throw new UsageError(`--invoke: ${file} does not export ${name}${hint}${rows}`);
}

/** Makes the call; with `mayWait`, functions of the host may return promises. */
export async function invoke(
  instance: Pick<ComponentInstance, "call" | "callAsync">,
  context: Context,
  { name, type: { result }, args }: PlannedInvocation,
  mayWait = false,
): Promise<InvocationResult> {
  try {
    const value: unknown = mayWait
      ? await instance.callAsync(context, name, ...args)
      : await instance.call(context, name, ...args);
    if (result === undefined) return { lines: [], isError: false };
    const whole = result.kind === "result" ? { tag: "ok", val: value } : value;
    return { lines: [printWave(whole, result)], isError: false };
  } catch (error) {
    if (!(error instanceof ComponentError) || result === undefined) throw error;
    return { lines: [printWave({ tag: "err", val: error.payload }, result)], isError: true };
  }
}
