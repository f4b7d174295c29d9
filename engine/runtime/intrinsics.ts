/**
 * Makes machine code of our own callable, which comes from modules in text whose memory is the whole address space. In: their compiled modules. Out: instances,
 * and one function per export, which runs while other compiled code is parked or none is there: on a stack of its own, so that it needs no
 * room on the guest stack, and past everything that calls of programs are subject to.
 */
import { CONTEXT, MEMORY, RECORD, STATUS, THREAD } from "../abi/context_layout.ts";
import { Bug } from "../errors.ts";
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
/** What the whole address space ends below. */
const SPACE_BYTES = 2 ** 47;

/** The collector, with the control area at address `control`. */
export function collectorCode(store: Store, module: CompiledModule, control: number): CollectorCode {
  const instance = ownInstance(store, module, { collector: { control: BigInt(control) } });
  return callables(instance, COLLECTOR_FUNCTIONS);
}

/** The builtins for strings, with the control area at address `control`; `services` do what the machine code leaves to the runtime. */
export function stringCode(
  store: Store,
  module: CompiledModule,
  control: number,
  services: (name: StringBuiltin) => HostService,
): StringCode {
  const imports = { runtime: { ...STRING_FUNCTIONS, control: BigInt(control) } };
  // The builtins run on the stack of who calls them: other code has an instance of its own.
  const builtins = ownInstance(store, module, imports);
  STRING_BUILTIN_NAMES.forEach((name, index) => builtins.hostServices[index] = services(name));
  const records = Object.fromEntries(STRING_BUILTIN_NAMES.map((name) => {
    const { code, context } = addressesOf(builtins, name);
    return [name, { code, context }];
  }));
  const { sweep } = callables(ownInstance(store, module, imports), ["sweep"]);
  return { records: records as StringCode["records"], sweep, owner: builtins };
}

/** An instance that has the whole address space as its memory, and that programs do not see. */
function ownInstance(store: Store, module: CompiledModule, imports: Imports): Instance {
  const instance = instantiate(store, module, imports);
  store.openInstances--;
  const { region, block } = instance;
  const memory = block.offset + module.layout.memoriesOffset;
  region.setWord(memory + MEMORY.BASE, 0);
  region.setWord(memory + MEMORY.LENGTH, SPACE_BYTES);
  return instance;
}

/** Index of an exported function, address of its record, and what that says. */
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

/** Functions that call the exports `names`. */
function callables<Name extends string>(instance: Instance, names: readonly Name[]): Record<Name, () => number> {
  const { module, region, block, store: { thread } } = instance;
  const { state, host } = thread;
  const low = host.reserve(STACK_BYTES, PROT.READ | PROT.WRITE);
  const top = low + STACK_BYTES - 64;
  region.setWord(block.offset + CONTEXT.STACK_LIMIT, low + SLACK_BYTES);
  const callable = (name: string) => {
    const { index, record, code, context } = addressesOf(instance, name);
    const thunk = module.image.base + module.image.tables.entryThunk[module.signatureIds[index]!]!;
    return () => {
      const guest = state.word(THREAD.GUEST_SP);
      state.setWord(THREAD.GUEST_SP, top);
      state.setWord(THREAD.CALL_CODE, code);
      state.setWord(THREAD.CALL_CONTEXT, context);
      state.setWord(THREAD.CALL_THUNK, thunk);
      state.setWord(THREAD.CALL_RECORD, record);
      const status = thread.call();
      state.setWord(THREAD.GUEST_SP, guest);
      if (status !== STATUS.DONE) {
        throw new Bug(`Code of our own failed in ${name}: ${thread.services.trapError().message}`);
      }
      return state.i32[THREAD.SLOTS >> 2]!;
    };
  };
  const calls = Object.fromEntries(names.map((name) => [name, callable(name)])) as Record<Name, () => number>;
  KEPT.set(calls, instance);
  return calls;
}

/** The instance behind some functions. */
const KEPT = new WeakMap<object, unknown>();
