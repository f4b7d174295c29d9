/** The module from which plugins of Extism import the functions of their host; by it they are known. */
export const EXTISM_HOST = "extism:host/env";
