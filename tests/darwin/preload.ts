/**
 * Makes WASI and the plugins' files use macOS's calls, on the double of its C library; for `deno test --preload`.
 */
import { DarwinCalls } from "../../engine/host/darwin_calls.ts";
import { FILE_CALLS } from "../../engine/host/file_calls.ts";
import { DarwinLibrary } from "./c_library.ts";

FILE_CALLS.linux = (host) => new DarwinCalls(new DarwinLibrary(host)).call;
