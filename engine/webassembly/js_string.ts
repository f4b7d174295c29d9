/**
 * JavaScript string builtins (JavaScript API, "JS String Builtins"): imports from "wasm:js-string", and string
 * constants whose import names are the strings themselves. In: the options of the compilation and a module's imports.
 * Out: functions and globals to link (implemented in runtime/strings/string_builtins.ts); an InvalidError when the type
 * of an import differs from the builtin's.
 */
import { InvalidError } from "../base/errors.ts";
import { LateModule, SUFFIX } from "../host/late_module.ts";
import { realmStore } from "../runtime/realm_store.ts";
import { STRING_FUNCTIONS } from "../runtime/strings/string_builtins.ts";
import { STRING_BUILTINS, STRING_MODULE, type StringBuiltin } from "../abi/string_layout.ts";
import type { Module as WasmModule } from "../wasm/module.ts";
import { hasBuiltinType } from "../wasm/string_imports.ts";
import { EXTERNREF, HEAP, refType } from "../wasm/types.ts";

/** The namespace of the builtin that configures prototypes, and the option that provides it (js_prototypes.ts). */
export const PROTOTYPES_MODULE = "wasm:js-prototypes";
export const PROTOTYPES_OPTION = "js-prototypes";

const PROTOTYPES: LateModule<typeof import("./js_prototypes.ts")> = new LateModule(
  new URL(`./js_prototypes.${SUFFIX}`, import.meta.url),
  () => import("./js_prototypes.ts"),
);

await PROTOTYPES.prepare();

/** String imports enabled by the compile options. */
export interface StringOptions {
  /** Whether the builtins are available. */
  builtins: boolean;
  /** Whether the builtin that configures prototypes is available, too. */
  prototypes?: boolean;
  /** The module name of constants, if any. */
  constants: string | undefined;
}

export const NO_STRINGS: StringOptions = { builtins: false, constants: undefined };

const STRING = refType(false, HEAP.extern);

/**
 * Throws InvalidError when the type of an import differs from the string builtin or constant that the options provide.
 */
export function checkStringImports(module: WasmModule, { builtins, constants, prototypes }: StringOptions): void {
  for (const entry of module.imports) {
    const { module: namespace, name, desc, offset } = entry;
    if (namespace === constants) {
      const fits = desc.kind === "global" && !desc.type.mutable &&
        (desc.type.type === EXTERNREF || desc.type.type === STRING);
      if (!fits) {
        throw new InvalidError(`The string constant ${JSON.stringify(name)} must be an immutable global of externref`, {
          offset,
        });
      }
    } else if (prototypes === true && namespace === PROTOTYPES_MODULE) {
      PROTOTYPES.get().checkPrototypesImport(module, entry);
    } else if (builtins && namespace === STRING_MODULE) {
      if (!Object.hasOwn(STRING_BUILTINS, name)) {
        throw new InvalidError(`Unknown builtin "${STRING_MODULE}" "${name}"`, { offset });
      }
      if (!hasBuiltinType(module, entry, name as StringBuiltin)) {
        throw new InvalidError(`The builtin "${STRING_MODULE}" "${name}" has another type`, { offset });
      }
    }
  }
}

/** The value that the options provide for the import `name` of `namespace`. */
export function provideString({ constants }: StringOptions, namespace: string, name: string): unknown {
  if (namespace === PROTOTYPES_MODULE && namespace !== constants) return PROTOTYPES.get().builtinOf(realmStore());
  return namespace === constants ? name : STRING_FUNCTIONS[name as StringBuiltin];
}
