/** Core functions as linking has them. */
import type { CoreValue } from "../abi/generated.ts";

/** A core function: an export of a core instance, or a function of the host. */
export type CoreFunction = (...args: CoreValue[]) => unknown;

/** Core functions that are JavaScript functions and not exports of an instance. */
export const HOST_FUNCTIONS: WeakSet<CoreFunction> = new WeakSet();
