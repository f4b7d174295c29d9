/**
 * Writes artifacts. In: a CompiledModule, or code compiled for another machine, and the code options. Out: the bytes of
 * an artifact (format.ts).
 */
import { Bug } from "../base/errors.ts";
import type { UnplacedCode } from "../link/code_description.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { toHex } from "../base/hex.ts";
import { writeArtifact } from "./format.ts";
import { engineStamp } from "./engine_stamp.ts";
import { metadataOf } from "./module_metadata.ts";
import { writeInlined } from "./inlined_sites.ts";
import { cpuFeatures } from "../host/cpu.ts";
import type { CompiledModule } from "../runtime/code/compiled_module.ts";
import { moduleHash, validModuleHash } from "../runtime/snapshot/snapshot.ts";
import {
  type ArtifactDescription,
  type CodeMachine,
  type CodeOptions,
  describeProcess,
  machineName,
  optionNames,
} from "./description.ts";

/** Serializes a module that was compiled or loaded with `options`. */
export function serializeModule(
  module: CompiledModule,
  options: CodeOptions,
  statistics: Readonly<Record<string, number>>,
): Uint8Array<ArrayBuffer> {
  const { thread, image } = module;
  if (!image.isComplete) throw new Bug("The code of the module has been replaced");
  const { host } = thread;
  const machine = { name: machineName(host), cpu: cpuFeatures(host), process: thread.code };
  const metadata = module.codeOffset === undefined
    ? metadataOf(module.valid.bytes)
    : { bytes: module.valid.bytes, codeOffset: module.codeOffset };
  return writeModule(machine, options, {
    ...module.description,
    bytes: new Uint8Array(host.view(image.base, image.size)).slice(),
    tables: image.tables,
    metadata,
    hash: moduleHash(module),
    statistics,
  });
}

/** Serializes code that was compiled with `options` for `machine`, which may differ from this machine. */
export function serializeCode(
  machine: CodeMachine,
  options: CodeOptions,
  valid: ValidModule,
  code: UnplacedCode,
): Uint8Array<ArrayBuffer> {
  return writeModule(machine, options, { ...code, metadata: metadataOf(valid.bytes), hash: validModuleHash(valid) });
}

/** Machine code and the metadata of its module. */
interface SavedCode extends UnplacedCode {
  metadata: { bytes: Uint8Array; codeOffset: number };
  hash: Uint8Array;
}

function writeModule(machine: CodeMachine, options: CodeOptions, code: SavedCode): Uint8Array<ArrayBuffer> {
  const { bytes, tables } = code;
  for (const at of tables.pollAt) bytes.fill(0, at, at + 4); // address-dependent
  const description: ArtifactDescription = {
    engine: engineStamp(),
    machine: machine.name,
    cpu: [...machine.cpu].sort(),
    options: optionNames(options),
    settings: code.settings,
    hash: toHex(code.hash),
    codeOffset: code.metadata.codeOffset,
    layout: code.layout,
    statistics: code.statistics,
    process: describeProcess(machine.process),
  };
  return writeArtifact({
    description,
    metadata: code.metadata.bytes,
    code: bytes,
    signatureIds: code.signatureIds,
    inlined: writeInlined(code.inlineSites),
    tables,
  });
}
