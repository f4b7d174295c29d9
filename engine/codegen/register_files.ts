/**
 * The registers that functions may allocate, by the options of their module: one register holds the byte length of
 * memory 0 if bounds are checked explicitly, and one the thread's fuel if it is charged. In: a backend's orders of
 * preference and these two registers. Out: its four register files.
 */
import type { DeniedRegisters, RegisterFile } from "./target.ts";

interface RegisterRoles {
  /** General registers by preference, without `memoryLength` and with `fuel`. */
  generalOrder: readonly number[];
  vectorOrder: readonly number[];
  names: readonly string[];
  memoryLength: number;
  fuel: number;
  /** Whether stack slots may have 4 bytes. */
  halfSlots?: boolean;
  denied?: readonly DeniedRegisters[];
}

/** The register file of functions in a module compiled with or without explicit bounds checks, and fuel. */
export type RegisterFiles = (explicitBounds: boolean, fuel?: boolean) => RegisterFile;

export function registerFiles(roles: RegisterRoles): RegisterFiles {
  const { generalOrder, vectorOrder, names, memoryLength, fuel, denied, halfSlots = false } = roles;
  const fileOf = (order: readonly number[]): RegisterFile => ({
    general: maskOf(order),
    vector: maskOf(vectorOrder),
    generalOrder: order,
    vectorOrder,
    names,
    halfSlots,
    ...(denied === undefined ? {} : { denied }),
  });
  const guarded = [...generalOrder, memoryLength];
  const files = [guarded, generalOrder].map((order) => ({
    unmetered: fileOf(order),
    metered: fileOf(order.filter((r) => r !== fuel)),
  }));
  return (explicitBounds, metered = false) => {
    const file = files[explicitBounds ? 1 : 0];
    return metered ? file.metered : file.unmetered;
  };
}

function maskOf(registers: readonly number[]): number {
  return registers.reduce((mask, r) => mask | (1 << (r & 31)), 0);
}
