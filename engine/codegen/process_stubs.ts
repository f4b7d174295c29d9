/**
 * Assembly of the process stubs (target.ts: ProcessStubs). In: a backend's emission of each stub. Out: their bytes and
 * entry points, followed by the fault words.
 */
import { FAULT_WORDS } from "../abi/context_layout.ts";
import { labelOffset } from "./branch_relaxation.ts";
import { putWord } from "./words.ts";
import { FIXUP, type FunctionEmission } from "./emission.ts";
import type { ProcessStubs } from "./target.ts";

/** Emits the stubs; each binds the label it is given. */
interface StubParts<S> {
  /** Alignment of the fault words in bytes. */
  readonly wordAlignment: number;
  readonly unwinds: boolean;
  call(s: S, label: number): void;
  resume(s: S, label: number): void;
  trapExit(s: S, label: number, landing: number): void;
  tailReturn(s: S, label: number): void;
  pollLanding(s: S, label: number): void;
  faultHandler(s: S, label: number, words: number, poll: number): void;
}

/** Emits the stubs into `s`, which is empty, and finishes it. */
export function assembleProcessStubs<S extends FunctionEmission & { finish(): void }>(
  s: S,
  parts: StubParts<S>,
): ProcessStubs {
  const [call, resume, trap, landing, tail] = [s.newLabel(), s.newLabel(), s.newLabel(), s.newLabel(), s.newLabel()];
  const [handler, words, poll] = [s.newLabel(), s.newLabel(), s.newLabel()];
  parts.call(s, call);
  parts.resume(s, resume);
  parts.trapExit(s, trap, landing);
  parts.tailReturn(s, tail);
  parts.pollLanding(s, poll);
  parts.faultHandler(s, handler, words, poll);
  s.fixup(FIXUP.ALIGN, parts.wordAlignment, 0, 0, 0);
  s.bind(words);
  const { out: asm, code } = s;
  asm.reserve(FAULT_WORDS.SIZE);
  for (const end = asm.at + FAULT_WORDS.SIZE; asm.at < end; asm.at += 4) putWord(asm.buffer, asm.at, 0);
  s.finish();
  return {
    bytes: code.bytes.slice(0, code.length),
    unwinds: parts.unwinds,
    call: labelOffset(s, call),
    resume: labelOffset(s, resume),
    trapExit: labelOffset(s, trap),
    tailReturn: labelOffset(s, tail),
    faultHandler: labelOffset(s, handler),
    faultWords: labelOffset(s, words),
    faultLanding: labelOffset(s, landing),
  };
}
