/**
 * Calls by bit pattern: arguments and results are 16-byte cells, so that NaN payloads and v128 survive. For tools that
 * compare bits, such as the script runner and the fuzzer; programs use exported functions.
 */
import { RECORD, THREAD } from "../../abi/context_layout.ts";
import type { Instance } from "./instance.ts";

/**
 * Calls function `funcIndex` of `instance` with `args`, four u32 words (little-endian) per argument. Returns the
 * results in the same form. Throws the errors of an exported function.
 */
export function callRaw(instance: Instance, funcIndex: number, args: Uint32Array): Uint32Array {
  if (!instance.module.countsDepth) return call(instance, funcIndex, args);
  return instance.store.thread.withDepth(instance.stackUnits, () => call(instance, funcIndex, args));
}

function call(instance: Instance, funcIndex: number, args: Uint32Array): Uint32Array {
  const { thread } = instance.store;
  const { attention } = thread;
  if (instance.closed || attention.isSet && attention.needsEntry()) instance.enter();
  const { module, region } = instance;
  const { state } = thread;
  const record = instance.recordOffset(funcIndex);
  const type = module.funcType(funcIndex);
  state.u32.set(args, THREAD.SLOTS >> 2);
  state.setWord(THREAD.CALL_CODE, region.word(record + RECORD.CODE));
  state.setWord(THREAD.CALL_CONTEXT, region.word(record + RECORD.CONTEXT));
  state.setWord(THREAD.CALL_THUNK, module.entryThunk(funcIndex));
  state.setWord(THREAD.CALL_RECORD, region.address + record);
  const status = thread.call();
  const { address } = instance.block;
  if (status !== 0) thread.serve(status, address | 0, (address / 0x1_0000_0000) | 0, instance.hostServices);
  const from = THREAD.SLOTS >> 2;
  return state.u32.slice(from, from + type.results.length * 4);
}
