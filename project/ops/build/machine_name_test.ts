/** Machines by the names of the command line. */
import { deepEqual, throws } from "node:assert/strict";
import { UsageError } from "../../base/failure.ts";
import { machineOf } from "./machine_name.ts";

Deno.test("machines have the names of releases, and x64 is a synonym of amd64", () => {
  deepEqual(machineOf("--target", "linux/amd64", "avx,bmi2"), { os: "linux", arch: "x64", cpu: ["avx", "bmi2"] });
  deepEqual(machineOf("--target", "darwin/arm64"), { os: "darwin", arch: "arm64", cpu: [] });
  deepEqual(machineOf("--target", "darwin/x64"), machineOf("--target", "darwin/amd64"));
  throws(() => machineOf("--target", "plan9/amd64"), UsageError);
});
