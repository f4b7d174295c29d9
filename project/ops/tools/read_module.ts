/**
 * Reads a core module for tools that instrument it. In: a path. Out: the valid module in binary form, its text if the
 * file is one, and its imports and exports. Throws FileFailure with the place in the text or the binary.
 */
import { type EngineOptions, NewEngine } from "@waft/engine";
import { parseModule } from "@waft/engine/internal/text_format";
import { FileFailure } from "../../base/failure.ts";
import { fileKind, isComponentKind } from "./file_kind.ts";
import { readInput } from "./read_input.ts";
import { type PlacedShape, readShape } from "../run/module_shape.ts";
import { inFile } from "../run/run_module.ts";

/** A valid module. */
interface ReadModule {
  readonly bytes: Uint8Array;
  readonly text: string | undefined;
  readonly shape: PlacedShape;
}

/** Reads and validates the module at `file`; `done` is the participle of the tool's verb, for refusals. */
export function readModule(file: string, engine: EngineOptions, done: string): ReadModule {
  return readModuleContent(file, readFileContent(file), engine, done);
}

/** Reads a file. Throws FileFailure. */
export function readFileContent(file: string): Uint8Array {
  try {
    return readInput(file);
  } catch (error) {
    throw new FileFailure(file, error);
  }
}

/** Validates the module that is the content of `file`, as {@linkcode readModule} does. */
export function readModuleContent(file: string, content: Uint8Array, engine: EngineOptions, done: string): ReadModule {
  const kind = fileKind(content);
  if (isComponentKind(kind)) {
    throw new FileFailure(file, new Error(`components cannot be ${done}, only modules`));
  }
  if (kind === "artifact") {
    throw new FileFailure(file, new Error(`artifacts cannot be ${done}, only the modules that they were made of`));
  }
  inFile(file, () => NewEngine(engine).validate(content));
  const isText = kind === "text of a module";
  const bytes = isText ? parseModule(content).bytes : content;
  const shape = readShape(bytes);
  if (shape === undefined) throw new FileFailure(file, new Error("it cannot be read"));
  return { bytes, text: isText ? new TextDecoder().decode(content) : undefined, shape };
}
