/**
 * WebAssembly.Global (JavaScript API, "Globals") over the engine's globals.
 */
import { realmStore } from "../api/engine.ts";
import { EXTERN, ExternGlobal } from "../runtime/instance/externals.ts";
import { FUNCREF, isRef, V128, valTypeName } from "../wasm/types.ts";
import { defineInterface, requireObject, Slot } from "./interface.ts";
import { valueType } from "./value_types.ts";

/** Internal slots of globals. */
export const GLOBALS: Slot<Global, ExternGlobal> = new Slot("Global");

/** A variable of WebAssembly. */
export class Global {
  constructor(descriptor: unknown, ...value: unknown[]) {
    const where = "WebAssembly.Global()";
    const given = requireObject(descriptor, `${where}: the first argument`);
    const mutable = Boolean(given.mutable);
    const type = valueType(given.value, `${where}: the property 'value'`);
    if (type === V128) throw new TypeError(`${where}: v128 has no JavaScript values`);
    const name = type === FUNCREF ? "funcref" : valTypeName(type);
    const store = realmStore();
    const global = ExternGlobal.make(store, name, mutable, value[0]);
    if (value.length > 0 && value[0] === undefined && isRef(type)) { // unlike in ExternGlobal.make, undefined is a value
      const { region, offset } = global[EXTERN];
      region.setWord(offset, store.toWord(undefined, type, global[EXTERN]));
    }
    GLOBALS.put(this, global);
  }

  /** The value. */
  valueOf(): unknown {
    return GLOBALS.require(this, "WebAssembly.Global.valueOf(): the receiver").value;
  }

  get value(): unknown {
    return GLOBALS.require(this, "get WebAssembly.Global.value: the receiver").value;
  }
}

/** The setter of `value`. Unlike one of a class, it can require an argument, as Web IDL does. */
const SETTER = {
  "set value"(this: unknown, ...given: unknown[]): void {
    const where = "set WebAssembly.Global.value";
    const global = GLOBALS.require(this, `${where}: the receiver`);
    if (given.length === 0) throw new TypeError(`${where}: a value is required`);
    if (!global[EXTERN].type.mutable) throw new TypeError(`${where}: the global is immutable`);
    global.value = given[0];
  },
}["set value"];
Object.defineProperty(SETTER, "length", { value: 1, configurable: true });
Object.defineProperty(Global.prototype, "value", { set: SETTER });

/** The object for a global of the engine. */
export function globalObject(inner: ExternGlobal): Global {
  return GLOBALS.outerOf(inner, Global.prototype);
}

defineInterface("Global", Global);
