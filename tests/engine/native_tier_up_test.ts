/**
 * The tests of tiering up with native threads in place of a Worker, as in packages: those of loops, and of modules that
 * are switched over. The compiler's machine code is mapped from a file where the system can.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { hostArchitecture } from "../../engine/host/cpu.ts";
import { useNativeCompiler } from "../../engine/portable/late_native.ts";
import { nativeCompiler } from "../../scripts/package/build_native_compiler.ts";

const native = await nativeCompiler(hostArchitecture());
const folder = mkdtempSync(join(tmpdir(), "waft-native-"));
const file = join(folder, "image.bin");
const [image] = native.images();
writeFileSync(file, image);
process.on("exit", () => rmSync(folder, { recursive: true }));
// Only Linux runs native threads: there, the code has to be mapped.
useNativeCompiler(() => ({ ...native, file, images: process.platform === "linux" ? () => [] : native.images }));
await import("./tier_up_test.ts");
await import("./loop_entry_test.ts");
