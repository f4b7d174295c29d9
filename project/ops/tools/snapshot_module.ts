/**
 * A module whose initialization has run. In: a module, the names of its initialization, and the inputs of its run. Out:
 * the binary form of a module that begins where the initialization has ended, in any engine.
 */
import { type Context, type Engine, type Module, TrapError } from "@waft/engine";
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { encodeModule } from "@waft/engine/internal/binary/encode";
import { initializedModule } from "@waft/engine/internal/runtime/initialized_module";
import { WasiExit } from "@waft/engine/wasi";
import { UsageError } from "../../base/failure.ts";
import { readInput } from "./read_input.ts";
import { type GuestInputs, type ImportStubs, inFile, programArguments, wasiFor, withStubs } from "../run/run_module.ts";

/** The function that tools call to initialize a module before its state is saved. */
const WIZER = "wizer.initialize";
/** The initialization of reactors (WASI application ABI). */
const REACTOR = "_initialize";

/** The initialization of a module and its program's arguments. */
export interface Initialization {
  /** The exported function to call; by default `wizer.initialize`, or only `_initialize`. */
  readonly init?: string | undefined;
  readonly args: readonly string[];
}

/** Imported functions that trap: an initialization that calls the host has no state that a module can keep. */
function trappingStubs(imports: readonly { module: string; name: string; kind: string }[]): ImportStubs {
  const stubs: Record<string, Record<string, unknown>> = Object.create(null);
  for (const { module, name, kind } of imports) {
    if (kind !== "func") continue;
    const names = stubs[module] ??= Object.create(null) as Record<string, unknown>;
    names[name] = () => {
      throw new TrapError(`the initialization calls the import "${module}" "${name}", which only later runs have`);
    };
  }
  return stubs;
}

/** Runs the initialization of the module in `file`, and returns the module with its state. */
export function snapshotModule(
  file: string,
  engine: Engine,
  inputs: GuestInputs & { readonly context: Context },
  { init, args }: Initialization,
): Uint8Array {
  const bytes = inFile(file, () => new Uint8Array(encodeModule(engine.parse(readInput(file)))));
  const module = inFile(file, () => engine.compile(bytes));
  const calls = initializationOf(file, module, init);
  const { wasi, imports } = wasiFor(module, programArguments(file, args), inputs);
  return inFile(file, () => {
    const instance = module.instantiate(inputs.context, withStubs(imports, trappingStubs(module.imports)));
    wasi?.attach(instance);
    try {
      for (const call of calls) instance.call(inputs.context, call);
    } catch (error) {
      if (!(error instanceof WasiExit) || error.status !== 0) throw error;
      throw new Error("the initialization ends the program: there is no state to keep");
    }
    return initializedModule(instance.internal, decodeModule(bytes), calls);
  });
}

/** The functions of an initialization, in order. Throws UsageError if there is none, or one has parameters. */
function initializationOf(file: string, module: Module, init: string | undefined): string[] {
  const has = (name: string) => module.functionType(name) !== undefined;
  const name = init ?? (has(WIZER) ? WIZER : undefined);
  const calls = [...(has(REACTOR) ? [REACTOR] : []), ...(name === undefined || name === REACTOR ? [] : [name])];
  if (calls.length === 0) {
    throw new UsageError(`${file} exports neither ${WIZER} nor ${REACTOR}: name its initialization with --init`);
  }
  for (const call of calls) {
    const type = module.functionType(call);
    if (type === undefined) throw new UsageError(`${file} exports no function ${JSON.stringify(call)}`);
    if (type.params.length > 0) throw new UsageError(`--init ${call}: the function has parameters`);
  }
  return calls;
}
