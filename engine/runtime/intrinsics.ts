/**
 * Instantiates intrinsic modules, whose memory is the whole address space. In: their compiled modules. Out: instances,
 * and a function per export, which can be called while other compiled code is parked or none is running. Such a call
 * uses a separate stack and is exempt from the limits of programs' calls.
 */
import { CONTEXT, MEMORY, RECORD, STATUS, THREAD } from "../abi/context_layout.ts";
import { Bug } from "../base/errors.ts";
import { COLLECTOR_FUNCTIONS } from "../gc/collector_layout.ts";
import type { CollectorCode } from "../gc/heap.ts";
import { PROT } from "../host/host.ts";
import { STRING_BUILTIN_NAMES, type StringBuiltin } from "../abi/string_layout.ts";
import type { CompiledModule } from "./code/compiled_module.ts";
import type { HostService } from "./boundary/marshal.ts";
import type { Instance } from "./instance/instance.ts";
import { type Imports, instantiate } from "./instance/instantiate.ts";
import type { Store } from "./instance/store.ts";
import { STRING_FUNCTIONS, type StringCode } from "./strings/string_builtins.ts";

const STACK_BYTES = 1 << 16;
/** Bytes at the end of the stack that functions may use without a check. */
const SLACK_BYTES = 4096;
/** The size of the address space in bytes. */
const SPACE_BYTES = 2 ** 47;

/** Instantiates the garbage collector with its control area at address `control`. */
export function collectorCode(store: Store, module: CompiledModule, control: number): CollectorCode {
  const instance = intrinsicInstance(store, module, { collector: { control: BigInt(control) } });
  return callables(instance, COLLECTOR_FUNCTIONS);
}

/**
 * Instantiates the string builtins with their control area at address `control`; `services` handle the cases that the
 * machine code leaves to the runtime.
 */
export function stringCode(
  store: Store,
  module: CompiledModule,
  control: number,
  services: (name: StringBuiltin) => HostService,
): StringCode {
  const imports = { runtime: { ...STRING_FUNCTIONS, control: BigInt(control) } };
  // The builtins run on their caller's stack; `sweep` runs on a separate stack and needs a separate instance.
  const builtins = intrinsicInstance(store, module, imports);
  STRING_BUILTIN_NAMES.forEach((name, index) => builtins.hostServices[index] = services(name));
  const records = Object.fromEntries(STRING_BUILTIN_NAMES.map((name) => {
    const { code, context } = addressesOf(builtins, name);
    return [name, { code, context }];
  }));
  const { sweep } = callables(intrinsicInstance(store, module, imports), ["sweep"]);
  return { records: records as StringCode["records"], sweep, owner: builtins };
}

/** Creates an instance whose memory is the whole address space and which programs do not see. */
function intrinsicInstance(store: Store, module: CompiledModule, imports: Imports): Instance {
  const instance = instantiate(store, module, imports);
  store.instances.open--;
  const { region, block } = instance;
  const memory = block.offset + module.layout.memoriesOffset;
  region.setWord(memory + MEMORY.BASE, 0);
  region.setWord(memory + MEMORY.LENGTH, SPACE_BYTES);
  return instance;
}

/** The index of an exported function, the address of its record, and the addresses in the record. */
function addressesOf(instance: Instance, name: string) {
  const { region, module } = instance;
  const { index } = module.valid.exports.find((entry) => entry.name === name)!;
  const offset = instance.recordOffset(index);
  return {
    index,
    record: region.address + offset,
    code: region.word(offset + RECORD.CODE),
    context: region.word(offset + RECORD.CONTEXT),
  };
}

/** Creates functions that call the exports `names`. */
function callables<Name extends string>(instance: Instance, names: readonly Name[]): Record<Name, () => number> {
  const { module, region, block, store: { thread } } = instance;
  const { state, host } = thread;
  const low = host.reserve(STACK_BYTES, PROT.READ | PROT.WRITE);
  const top = low + STACK_BYTES - 64;
  region.setWord(block.offset + CONTEXT.STACK_LIMIT, low + SLACK_BYTES);
  const callable = (name: string) => {
    const { index, record, code, context } = addressesOf(instance, name);
    const thunk = module.entryThunk(index);
    return () => {
      const guest = state.word(THREAD.GUEST_SP);
      state.setWord(THREAD.GUEST_SP, top);
      state.setWord(THREAD.CALL_CODE, code);
      state.setWord(THREAD.CALL_CONTEXT, context);
      state.setWord(THREAD.CALL_THUNK, thunk);
      state.setWord(THREAD.CALL_RECORD, record);
      const parkedContext = state.word(THREAD.PARK_CONTEXT);
      const parkedIndex = state.i32[THREAD.PARK_INDEX >> 2];
      let status = thread.call();
      // Between two pieces of a large move.
      while (status === STATUS.BUILTIN) status = thread.resume();
      state.setWord(THREAD.PARK_CONTEXT, parkedContext);
      state.i32[THREAD.PARK_INDEX >> 2] = parkedIndex;
      state.setWord(THREAD.GUEST_SP, guest);
      if (status !== STATUS.DONE) {
        throw new Bug(`Intrinsic ${name} failed: ${thread.services.trapError().message}`);
      }
      return state.i32[THREAD.SLOTS >> 2];
    };
  };
  const calls = Object.fromEntries(names.map((name) => [name, callable(name)])) as Record<Name, () => number>;
  OWNERS.set(calls, instance);
  return calls;
}

/** Keeps the instance alive as long as its functions. */
const OWNERS = new WeakMap<object, unknown>();
