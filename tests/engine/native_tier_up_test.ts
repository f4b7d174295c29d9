/**
 * The tests of tiering up with native threads in place of a Worker, as in packages: those of loops, and of modules that
 * are switched over.
 */
import { hostArchitecture } from "../../engine/host/cpu.ts";
import { useNativeCompiler } from "../../engine/portable/late_native.ts";
import { nativeCompiler } from "../../scripts/package/build_native_compiler.ts";

const native = await nativeCompiler(hostArchitecture());
useNativeCompiler(() => native);
await import("./tier_up_test.ts");
await import("./loop_entry_test.ts");
