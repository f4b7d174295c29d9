/**
 * The part of a function backend that does not depend on the processor. In: a processor's selection and emission. Out:
 * a FunctionBackend. Invariant: each backend owns its state, which compilations in progress do not share.
 */
import { BlockEnds } from "./block_ends.ts";
import type { FunctionBackend } from "./target.ts";

/** The parts of a function backend: state of selection `L` and of emission `E`, and the functions that use it. */
export interface FunctionBackendParts<L, E> {
  newLowering(): L;
  select(lowering: L, ...args: Parameters<FunctionBackend["select"]>): void;
  newEmission(): E;
  emit(emission: E, ends: BlockEnds, ...args: Parameters<FunctionBackend["emit"]>): void;
}

/** A backend with new state. */
export function functionBackend<L, E>(parts: FunctionBackendParts<L, E>): FunctionBackend {
  const lowering = parts.newLowering();
  const emission = parts.newEmission();
  const ends = new BlockEnds();
  return {
    select: (...args) => parts.select(lowering, ...args),
    emit: (...args) => parts.emit(emission, ends, ...args),
  };
}
