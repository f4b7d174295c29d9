/** Whether there are the kernels as machine code: in packages (scripts/package/build_native_kernel.ts). */
export const HAS_NATIVE_KERNEL: boolean = false;
