/** The module node:wasi of hosts whose own one cannot be changed: Deno's loader gets this one instead (loader_hooks.ts). */
import { WASI } from "./node_wasi.ts";

export { WASI };
export default { WASI };
