/**
 * Makes WASI and the plugins' files use macOS's calls, on the double of its C library; for `deno test --preload`. At
 * the end, adds the names of the functions called to the file that WAFT_DARWIN_CALLED names.
 */
import { DarwinCalls } from "../../engine/host/calls/darwin_calls.ts";
import { FILE_CALLS } from "../../engine/host/calls/file_calls.ts";
import { DarwinLibrary } from "./c_library.ts";

const libraries: DarwinLibrary[] = [];

FILE_CALLS.make = (host) => {
  const library = new DarwinLibrary(host);
  libraries.push(library);
  return new DarwinCalls(library).call;
};

globalThis.addEventListener("unload", () => {
  const file = Deno.env.get("WAFT_DARWIN_CALLED");
  const names = new Set(libraries.flatMap(({ called }) => [...called]));
  if (file !== undefined) Deno.writeTextFileSync(file, [...names, ""].join("\n"), { append: true });
});
