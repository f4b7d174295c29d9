/**
 * The replacement for node:wasi on hosts whose own module cannot be changed: Deno's loader substitutes it
 * (loader_hooks.ts).
 */
import { WASI } from "./node_wasi.ts";

export { WASI };
export default { WASI };
