/**
 * Exceptions that machine code makes without the runtime (backend_x64/unwind_stubs.ts): records, each with the exnref that whoever takes the
 * record gives to what it has caught. In: the pointers in the thread state and what stands in the records. Out: an Exception behind every
 * exnref, which gets tag and payload when JavaScript is about to look.
 *
 * Invariant: a record that is not taken yet, and the exception that machine code has caught last, are held; other exnrefs live as all do.
 */
import { EXCEPTION_RECORD, TAG_BITS, THREAD } from "../../abi/context_layout.ts";
import { type Host, PROT } from "../../host/host.ts";
import { Exception, type ExceptionBorder, Tag } from "./exception.ts";
import type { HandleTable } from "../boundary/handles.ts";
import { NativeRegion } from "../memory/native_region.ts";

const CAUGHT_NATIVELY = THREAD.CAUGHT_NATIVELY >> 2;

export class ExceptionRecords {
  readonly #host: Host;
  readonly #state: NativeRegion;
  readonly #exceptions: HandleTable;
  #region: NativeRegion | undefined;
  /** Exceptions of the records. */
  #pending: Exception[] = [];
  /** Records below this have been looked at. */
  #settled = 0;

  constructor(host: Host, state: NativeRegion, exceptions: HandleTable) {
    this.#host = host;
    this.#state = state;
    this.#exceptions = exceptions;
  }

  /** How many records are taken. */
  #taken(): number {
    if (this.#region === undefined) return 0;
    return (this.#state.word(THREAD.NEXT_RECORD) - this.#region.address) / EXCEPTION_RECORD.SIZE;
  }

  /** How many are not: each has an exnref that nobody knows. */
  get spare(): number {
    return this.#pending.length - this.#taken();
  }

  /** Gives the exceptions of records that have been taken what they hold. */
  settle(): void {
    for (const taken = this.#taken(); this.#settled < taken; this.#settled++) {
      this.#pending[this.#settled]!.fill(this.#region!, this.#settled * EXCEPTION_RECORD.SIZE);
    }
  }

  /** New records, if none are left. */
  #refill(): void {
    const state = this.#state;
    if (this.spare > 0) return;
    this.settle();
    const bytes = this.#host.pageSize;
    this.#region ??= new NativeRegion(this.#host, this.#host.reserve(bytes, PROT.READ | PROT.WRITE), bytes);
    const { address } = this.#region;
    // The last one is for what the runtime has caught.
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

  /** What machine code has caught last, and JavaScript knows from now on; undefined if that is not so. Asked for before anything else is called. */
  take(boundary: ExceptionBorder): Exception | undefined {
    const state = this.#state;
    if (state.u32[CAUGHT_NATIVELY] === 0) return undefined;
    this.settle();
    state.u32[CAUGHT_NATIVELY] = 0;
    const word = state.word(THREAD.CAUGHT_WORD);
    if (word !== 0) return this.#exceptions.valueOf(word) as Exception;
    return Exception.thrown(Tag.of(state.word(THREAD.CAUGHT_TAG)), boundary);
  }

  /** `exception`, which has an exnref, has landed by the runtime: machine code is to know it as one that it has caught itself. */
  lend(exception: Exception): void {
    const { tag, cells } = exception;
    this.#refill();
    if ((tag.identity & TAG_BITS.RECORDED) === 0) return;
    const state = this.#state;
    const word = this.#exceptions.handleOf(exception);
    const lent = this.#region!.size - EXCEPTION_RECORD.SIZE;
    this.#region!.setWord(lent + EXCEPTION_RECORD.TAG, tag.identity);
    this.#region!.u32.set(cells, (lent + EXCEPTION_RECORD.PAYLOAD) >> 2);
    state.setWord(THREAD.CAUGHT_WORD, word);
    state.setWord(THREAD.CAUGHT_RECORD, this.#region!.address + lent);
    state.u32[CAUGHT_NATIVELY] = 1;
  }

  /** Nobody will ask for what was caught last. */
  rest(): void {
    this.#state.u32[CAUGHT_NATIVELY] = 0;
  }

  /** Visits the exnrefs that machine code may still give away. */
  visitHeld(visit: (word: number) => void): void {
    for (let k = this.#taken(); k < this.#pending.length; k++) {
      visit(this.#region!.word(k * EXCEPTION_RECORD.SIZE + EXCEPTION_RECORD.WORD));
    }
    if (this.#state.u32[CAUGHT_NATIVELY] !== 0) visit(this.#state.word(THREAD.CAUGHT_WORD));
  }
}
