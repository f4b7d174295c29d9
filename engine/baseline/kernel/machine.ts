/** The machine that the compiler makes code for. The build for another processor puts that one's file in this one's place. */
export * from "./machine_x64.ts";
