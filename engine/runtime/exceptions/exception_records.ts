/**
 * Exceptions that machine code throws and catches without the runtime (backend_x64/unwind_stubs.ts): a pool of records,
 * each with an exnref that machine code assigns to the exception it catches. In: the pointers in the thread state and
 * the contents of the records. Out: an Exception behind every exnref, which receives its tag and payload before
 * JavaScript reads it.
 *
 * Invariant: the exnrefs of unused records, and the exception that machine code caught last, are roots; other exnrefs
 * are collected as usual.
 */
import { EXCEPTION_RECORD, TAG_BITS, THREAD } from "../../abi/context_layout.ts";
import { type Host, PROT } from "../../host/host.ts";
import { Exception, type ExceptionBoundary, Tag } from "./exception.ts";
import type { HandleTable } from "../boundary/handles.ts";
import { NativeRegion } from "../memory/native_region.ts";

const CAUGHT_NATIVELY = THREAD.CAUGHT_NATIVELY >> 2;

export class ExceptionRecords {
  readonly #host: Host;
  readonly #state: NativeRegion;
  readonly #exceptions: HandleTable;
  #region: NativeRegion | undefined;
  /** The exceptions of the records, in the same order. */
  #pending: Exception[] = [];
  /** The number of records whose exceptions have their contents. */
  #settled = 0;

  constructor(host: Host, state: NativeRegion, exceptions: HandleTable) {
    this.#host = host;
    this.#state = state;
    this.#exceptions = exceptions;
  }

  /** The number of used records. */
  #taken(): number {
    if (this.#region === undefined) return 0;
    return (this.#state.word(THREAD.NEXT_RECORD) - this.#region.address) / EXCEPTION_RECORD.SIZE;
  }

  /** The number of unused records, whose exnrefs no code has received. */
  get unused(): number {
    return this.#pending.length - this.#taken();
  }

  /** Copies the contents of used records to their exceptions. */
  settle(): void {
    for (const taken = this.#taken(); this.#settled < taken; this.#settled++) {
      this.#pending[this.#settled].fill(this.#region!, this.#settled * EXCEPTION_RECORD.SIZE);
    }
  }

  /** Provides new records if all are used. */
  #refill(): void {
    const state = this.#state;
    if (this.unused > 0) return;
    this.settle();
    const bytes = this.#host.pageSize;
    this.#region ??= new NativeRegion(this.#host, this.#host.reserve(bytes, PROT.READ | PROT.WRITE), bytes);
    const { address } = this.#region;
    // The last record is reserved for an exception that the runtime has delivered.
    const count = Math.floor(bytes / EXCEPTION_RECORD.SIZE) - 1;
    this.#pending = Array.from({ length: count }, (_, k) => {
      const exception = Exception.pending();
      const word = this.#exceptions.handleOf(exception);
      this.#region!.setWord(k * EXCEPTION_RECORD.SIZE + EXCEPTION_RECORD.WORD, word);
      return exception;
    });
    this.#settled = 0;
    state.setWord(THREAD.NEXT_RECORD, address);
    state.setWord(THREAD.LAST_RECORD, address + count * EXCEPTION_RECORD.SIZE);
  }

  /**
   * Transfers the exception that machine code caught last to the runtime; undefined if the runtime already knows it.
   * Must be called before any other code runs.
   */
  take(boundary: ExceptionBoundary): Exception | undefined {
    const state = this.#state;
    if (state.u32[CAUGHT_NATIVELY] === 0) return undefined;
    this.settle();
    state.u32[CAUGHT_NATIVELY] = 0;
    const word = state.word(THREAD.CAUGHT_WORD);
    if (word !== 0) return this.#exceptions.valueOf(word) as Exception;
    return Exception.thrown(Tag.of(state.word(THREAD.CAUGHT_TAG)), boundary);
  }

  /**
   * Makes machine code treat `exception`, which has an exnref and was delivered by the runtime, as one that it caught
   * itself.
   */
  expose(exception: Exception): void {
    const { tag, cells } = exception;
    this.#refill();
    if ((tag.identity & TAG_BITS.RECORDED) === 0) return;
    const state = this.#state;
    const word = this.#exceptions.handleOf(exception);
    const reserved = this.#region!.size - EXCEPTION_RECORD.SIZE;
    this.#region!.setWord(reserved + EXCEPTION_RECORD.TAG, tag.identity);
    this.#region!.u32.set(cells, (reserved + EXCEPTION_RECORD.PAYLOAD) >> 2);
    state.setWord(THREAD.CAUGHT_WORD, word);
    state.setWord(THREAD.CAUGHT_RECORD, this.#region!.address + reserved);
    state.u32[CAUGHT_NATIVELY] = 1;
  }

  /** Drops the exception that was caught last, which code can no longer refer to. */
  dropCaught(): void {
    this.#state.u32[CAUGHT_NATIVELY] = 0;
  }

  /** Visits the exnrefs that machine code may still hand out. */
  visitRoots(visit: (word: number) => void): void {
    for (let k = this.#taken(); k < this.#pending.length; k++) {
      visit(this.#region!.word(k * EXCEPTION_RECORD.SIZE + EXCEPTION_RECORD.WORD));
    }
    if (this.#state.u32[CAUGHT_NATIVELY] !== 0) visit(this.#state.word(THREAD.CAUGHT_WORD));
  }
}
