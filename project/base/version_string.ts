/**
 * The version of this build, in one place: the root `deno.json` says the same (a test compares them).
 */
export const VERSION = "0.1.0";
