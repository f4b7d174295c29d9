/** The generator of x64 stubs and thunks, which host_backend.ts loads on first use. */
export { GENERATOR } from "../backend_x64/stub_generator.ts";
