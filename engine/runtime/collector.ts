/**
 * Makes the collector's machine code callable. In: its compiled module (gc/collector_code.ts). Out: one function per export, which
 * runs while other compiled code is parked or none is there: on a stack of its own, so that it needs no room on the guest stack,
 * and past everything that calls of programs are subject to.
 */
import { CONTEXT, MEMORY, RECORD, STATUS, THREAD } from "../context_layout.ts";
import { Bug } from "../errors.ts";
import { COLLECTOR_FUNCTIONS } from "../gc/collector_layout.ts";
import type { CollectorCode } from "../gc/heap.ts";
import { PROT } from "../host/host.ts";
import type { CompiledModule } from "./compiled_module.ts";
import { instantiate } from "./instantiate.ts";
import type { Store } from "./store.ts";

const STACK_BYTES = 1 << 16;
/** Bytes at the end of the stack that functions may use without a check. */
const SLACK_BYTES = 4096;
/** What the whole address space ends below. */
const SPACE_BYTES = 2 ** 47;

/** Instantiates `module` with the control area at address `control`. */
export function collectorCode(store: Store, module: CompiledModule, control: number): CollectorCode {
  const { thread } = store;
  const { state, host } = thread;
  const instance = instantiate(store, module, { collector: { control: BigInt(control) } });
  const { region, block } = instance;
  const low = host.reserve(STACK_BYTES, PROT.READ | PROT.WRITE);
  const top = low + STACK_BYTES - 64;
  region.setWord(block.offset + CONTEXT.STACK_LIMIT, low + SLACK_BYTES);
  const memory = block.offset + module.layout.memoriesOffset;
  region.setWord(memory + MEMORY.BASE, 0);
  region.setWord(memory + MEMORY.LENGTH, SPACE_BYTES);
  const callable = (name: string) => {
    const { index } = module.valid.exports.find((e) => e.name === name)!;
    const record = instance.recordOffset(index);
    const code = region.word(record + RECORD.CODE);
    const context = region.word(record + RECORD.CONTEXT);
    const thunk = module.image.base + module.image.tables.entryThunk[module.signatureIds[index]!]!;
    return () => {
      const guest = state.word(THREAD.GUEST_SP);
      state.setWord(THREAD.GUEST_SP, top);
      state.setWord(THREAD.CALL_CODE, code);
      state.setWord(THREAD.CALL_CONTEXT, context);
      state.setWord(THREAD.CALL_THUNK, thunk);
      state.setWord(THREAD.CALL_RECORD, region.address + record);
      const status = thread.call();
      state.setWord(THREAD.GUEST_SP, guest);
      if (status !== STATUS.DONE) throw new Bug(`The collector failed in ${name}: ${thread.trapError().message}`);
      return state.i32[THREAD.SLOTS >> 2]!;
    };
  };
  const code = Object.fromEntries(COLLECTOR_FUNCTIONS.map((name) => [name, callable(name)])) as CollectorCode;
  KEPT.set(code, instance);
  return code;
}

/** The instance behind the functions. */
const KEPT = new WeakMap<CollectorCode, unknown>();
