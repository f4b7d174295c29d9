/**
 * Machines that code is compiled for, as the command line names them. In: `linux/amd64` and a list of instruction sets
 * such as `avx,bmi2`. Out: the machine in the engine's terms; UsageError for an unknown one.
 */
import type { Machine } from "@waft/engine";
import { UsageError } from "../../base/failure.ts";

const MACHINES: Readonly<Record<string, Omit<Machine, "cpu">>> = {
  "linux/amd64": { os: "linux", arch: "x64" },
  "linux/arm64": { os: "linux", arch: "arm64" },
  "darwin/amd64": { os: "darwin", arch: "x64" },
  "darwin/arm64": { os: "darwin", arch: "arm64" },
  "windows/amd64": { os: "windows", arch: "x64" },
};

/** The names of all machines. */
export const MACHINE_NAMES: readonly string[] = Object.keys(MACHINES);

/** The machine called `name`; `linux/x64` is a synonym of `linux/amd64`. `flag` is named in the error. */
export function machineOf(flag: string, name: string, cpu = ""): Machine {
  const machine = MACHINES[name.replace(/\/x64$/, "/amd64")];
  if (machine === undefined) throw new UsageError(`${flag} takes ${MACHINE_NAMES.join(", ")}, not "${name}"`);
  return { ...machine, cpu: cpu === "" ? [] : cpu.split(",") };
}
