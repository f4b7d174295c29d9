/**
 * Components from files: a core module with its world and adapters, or several components. In: paths. Out: a file with
 * the component, and its WIT. Invariant: the file is written completely, or not at all if an input is refused.
 */
import { NewEngine } from "@waft/engine";
import { InvalidError } from "@waft/engine/internal/errors";
import { writeBytes } from "@waft/engine/internal/host/process";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import { composeComponents, type Part } from "@waft/component/internal/build/compose";
import { type Adapter, newComponent } from "@waft/component/internal/build/new_component";
import { validateComponent } from "@waft/component/internal/validate/validate_component";
import type { WitWorld } from "@waft/component/internal/wit/document";
import { witOfComponent } from "@waft/component/internal/wit/from_component";
import { loadWit } from "@waft/component/internal/wit/load";
import { FileFailure, oneLine, UsageError } from "../../base/failure.ts";
import { replaceFile } from "../../base/replace_file.ts";
import { chosenWorlds } from "./chosen_worlds.ts";
import { componentBytes } from "./component_bytes.ts";
import { ALL_FEATURES } from "../inspection/inspect_module.ts";
import { readInput } from "./read_input.ts";

/** A component that has been written. */
export interface WrittenComponent {
  readonly file: string;
  /** Its size. */
  readonly bytes: number;
  readonly wit: ReturnType<typeof witOfComponent>;
}

/** The inputs of {@linkcode makeComponent} beside the module. */
export interface ComponentInputs {
  readonly output: string;
  readonly wit?: string;
  readonly world?: string;
  /** `NAME=FILE` each. */
  readonly adapt: readonly string[];
}

/** Makes a component of the core module in `file`. Throws FileFailure, and UsageError for wrong options. */
export function makeComponent(file: string, inputs: ComponentInputs): WrittenComponent {
  const { wit, world, output } = inputs;
  if (wit === undefined && world !== undefined) throw new UsageError("--world requires --wit");
  const chosen = wit === undefined ? {} : { world: theWorld(wit, world) };
  const adapters = inputs.adapt.map(readAdapter);
  const component = inFile(file, () => newComponent(readModule(file), { ...chosen, adapters }));
  return write(output, component);
}

/** Composes the component in `file` with those in `plug`. */
export async function composeFiles(
  file: string,
  { plug, output }: { readonly plug: readonly string[]; readonly output: string },
): Promise<WrittenComponent> {
  const plugs: Part[] = [];
  for (const path of plug) plugs.push(await readPart(path));
  const socket = await readPart(file);
  return write(output, inFile(file, () => composeComponents(socket, plugs)));
}

function inFile<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof FileFailure ? error : new FileFailure(file, error);
  }
}

function theWorld(path: string, name: string | undefined): WitWorld {
  const worlds = inFile(path, () => [...loadWit(path).root.worlds.values()]);
  const found = chosenWorlds(worlds, path, name);
  if (found.length === 1) return found[0];
  const names = found.map((world) => world.name).join(", ");
  throw new UsageError(`${oneLine(path)} has several worlds: choose one of ${oneLine(names)} with --world`);
}

function readAdapter(word: string): Adapter {
  const at = word.indexOf("=");
  if (at <= 0 || at === word.length - 1) throw new UsageError(`--adapt ${oneLine(word)}: the form is NAME=FILE`);
  return { name: word.slice(0, at), bytes: readModule(word.slice(at + 1)) };
}

/** A core module in binary form. */
function readModule(file: string): Uint8Array {
  return inFile(file, () => {
    const content = readInput(file);
    const engine = NewEngine({ features: ALL_FEATURES });
    const bytes = content[0] === 0 ? content : engine.parse(content).bytes;
    engine.validate(bytes);
    return bytes;
  });
}

async function readPart(file: string): Promise<Part> {
  try {
    const bytes = await componentBytes(readInput(file));
    if (bytes === undefined) throw new InvalidError("this is not a component");
    return { name: file, bytes };
  } catch (error) {
    throw new FileFailure(file, error);
  }
}

function write(file: string, component: Uint8Array): WrittenComponent {
  const wit = witOfComponent(validateComponent(decodeComponent(component)));
  try {
    if (file === "-") writeBytes(1, component);
    else replaceFile(file, component);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  return { file, bytes: component.length, wit };
}
