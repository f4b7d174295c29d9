/**
 * The kind of a file, and its facts: a core module, a core dump, a recording, an artifact, a component and its world,
 * or WIT. In: a path. Out: plain data, and packages of WIT. Nothing is compiled.
 */
import { statSync } from "node:fs";
import { NewEngine } from "@waft/engine";
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { type RecordingFacts, recordingFacts } from "@waft/engine/internal/recording/describe";
import { isRecording } from "@waft/engine/internal/recording/log_file";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import type { Component } from "@waft/component/internal/model/definitions";
import type { WitPackage } from "@waft/component/internal/wit/document";
import { embeddedWit, witOfComponent } from "@waft/component/internal/wit/from_component";
import { loadWit } from "@waft/component/internal/wit/load";
import { validateComponent } from "@waft/component/internal/validate/validate_component";
import { componentBytes } from "../tools/component_bytes.ts";
import { fileKind } from "../tools/file_kind.ts";
import { type ArtifactFacts, artifactFacts } from "./inspect_artifact.ts";
import { type CoredumpFacts, coredumpFacts } from "./inspect_coredump.ts";
import { ALL_FEATURES, type ModuleFacts, moduleFacts } from "./inspect_module.ts";
import { readInput } from "../tools/read_input.ts";

/** A file, for `waft inspect`. */
export type Inspection =
  | { readonly kind: "wit"; readonly documents: readonly InspectedPackages[] }
  | {
    readonly kind: "component";
    readonly documents: readonly InspectedPackages[];
    readonly bytes: number;
    readonly modules: readonly CoreModulePart[];
  }
  | {
    readonly kind: "core module";
    /** The worlds that tools have embedded. */
    readonly documents: readonly InspectedPackages[];
    readonly module: ModuleFacts;
  }
  | { readonly kind: "core dump"; readonly coredump: CoredumpFacts }
  | { readonly kind: "recording"; readonly recording: RecordingFacts }
  | { readonly kind: "artifact"; readonly artifact: ArtifactFacts };

/** A root package, the packages that it refers to, and the imports and exports that WIT cannot express. */
export interface InspectedPackages {
  readonly root: WitPackage;
  readonly packages: ReadonlyMap<string, WitPackage>;
  readonly omitted: readonly string[];
}

/** A core module within a component. */
export interface CoreModulePart {
  /** Indices of the components around it and its own, among the core modules that each defines. */
  readonly path: readonly number[];
  /** Offset of its first byte in the file. */
  readonly offset: number;
  readonly bytes: number;
}

/** Reads the file or directory at `path`. Throws the engine's errors, and those of the file system. */
export async function inspectFile(path: string): Promise<Inspection> {
  if (path.endsWith(".wit") || (path !== "-" && statSync(path).isDirectory())) {
    return { kind: "wit", documents: [{ ...loadWit(path, { allFeatures: true }), omitted: [] }] };
  }
  const content = readInput(path);
  if (isRecording(content)) return { kind: "recording", recording: recordingFacts(content) };
  const kind = fileKind(content);
  if (kind === "artifact") return { kind: "artifact", artifact: artifactFacts(content) };
  const bytes = await componentBytes(content, kind);
  if (bytes === undefined) {
    const binary = content[0] === 0 ? content : binaryOf(content);
    const module = decodeModule(binary);
    const coredump = coredumpFacts(module);
    if (coredump !== undefined) return { kind: "core dump", coredump };
    return { kind: "core module", documents: embeddedWit(module), module: moduleFacts(module) };
  }
  const component = decodeComponent(bytes);
  const documents = [witOfComponent(validateComponent(component))];
  return { kind: "component", documents, bytes: bytes.length, modules: coreModules(component) };
}

/** The binary form of a text, whose errors have their places in the text. */
export function binaryOf(text: Uint8Array): Uint8Array {
  const engine = NewEngine({ features: ALL_FEATURES });
  engine.validate(text);
  return engine.parse(text).bytes;
}

/** The core modules of a component and of the components in it. */
function coreModules({ definitions }: Component, around: readonly number[] = []): CoreModulePart[] {
  let modules = 0;
  let components = 0;
  return definitions.flatMap((definition) => {
    if (definition.kind === "component") return coreModules(definition.component, [...around, components++]);
    if (definition.kind !== "core module") return [];
    return [{ path: [...around, modules++], offset: definition.offset, bytes: definition.bytes.length }];
  });
}
