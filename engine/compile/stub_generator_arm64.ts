/** The generator of arm64 stubs and thunks, which host_backend.ts loads on first use. */
export { GENERATOR } from "../backend_arm64/stub_generator.ts";
