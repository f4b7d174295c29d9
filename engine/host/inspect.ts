/**
 * The key of custom formatting on Deno. In a file of its own because public types refer to it: their declarations must
 * not need the types of Node.
 */

/** The key of the method with which Deno's `console.log` formats an object. */
export const DENO_INSPECT: unique symbol = Symbol.for("Deno.customInspect") as typeof DENO_INSPECT;
