/**
 * Weak references of Node-API. Unlike a WeakRef, such a reference does not keep its object alive until the current job
 * ends (ECMAScript, "KeepDuringJob"), so synchronous code notices that an object is gone. In: the loader of shared
 * objects. Out: the functions of reference_code.ts.
 *
 * The addon is a file in memory, which exists on Linux only.
 */
import { writeSharedObject } from "../code/elf.ts";
import { type CodeFiles, uniqueFdPath } from "../code/object_entry.ts";
import { REFERENCE_CALLS, referenceCode } from "../code/reference_code.ts";
import type { NativeReferences } from "../finalizers.ts";

/** The symbol that runtimes call when they load an addon. */
const ENTRY = "napi_register_module_v1";

/**
 * Loads the addon. `addressesOf` returns the addresses of functions of the process. Throws an Error where the runtime
 * lacks Node-API or may not load addons.
 */
export function loadReferences(
  arch: "x64" | "arm64",
  files: CodeFiles,
  addressesOf: <Name extends string>(names: readonly Name[]) => Record<Name, number>,
): NativeReferences {
  const text = referenceCode(arch, addressesOf(REFERENCE_CALLS));
  const file = files.create(writeSharedObject(text, { [ENTRY]: 0 }, arch));
  try {
    const addon = { exports: {} };
    process.dlopen(addon, uniqueFdPath(file));
    const { make, get, remove, adjust } = addon.exports as NativeReferences;
    // A runtime without weak references would return another value than the object.
    const probe = {};
    const reference = make(probe);
    if (get(reference) !== probe) throw new Error("The weak references of this runtime do not work");
    remove(reference);
    return { make, get, remove, adjust };
  } finally {
    files.close(file);
  }
}
