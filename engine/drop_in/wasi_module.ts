/**
 * The replacement for node:wasi on hosts whose own module cannot be changed: on Deno, the resolve hook of
 * loader_hooks.ts substitutes it.
 */
import { WASI } from "./node_wasi.ts";

export { WASI };
export default { WASI };
