/**
 * The core modules of components, by their compiled form. In: compiled modules with their bytes. Out: facts that the
 * compiled form does not have. Invariant: a module that came from elsewhere may do anything.
 */
import type { Module } from "@waft/engine";
import { ByteReader } from "@waft/engine/internal/base/bytes";
import { SECTION } from "@waft/engine/internal/wasm/section_ids";
import type { ModuleType } from "../model/types.ts";
import { moduleType } from "../validate/validate_component.ts";

const BYTES = new WeakMap<Module, Uint8Array>();

/** Remembers the bytes of a valid module. */
export function rememberModule(module: Module, bytes: Uint8Array): void {
  BYTES.set(module, bytes);
}

/** The type of a module of a component; undefined for others. */
export function moduleTypeOf(module: Module): ModuleType | undefined {
  const bytes = BYTES.get(module);
  return bytes === undefined ? undefined : moduleType(bytes);
}

const HEADER_BYTES = 8;

/** Whether a module may throw exceptions: it defines or imports tags. */
export function usesTags(module: Module): boolean {
  const bytes = BYTES.get(module);
  if (bytes === undefined || module.imports.some(({ kind }) => kind === "tag")) return true;
  const reader = new ByteReader(bytes, HEADER_BYTES);
  while (reader.left > 0) {
    if (reader.u8() === SECTION.tag) return true;
    const size = reader.u32();
    reader.pos += size;
  }
  return false;
}
