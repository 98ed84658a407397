/** The functions of NVRTC that Braid calls, with their names in nvrtc.h. */
import type { Out } from "./driver-api.ts";
import type { Prototypes } from "./native-library.ts";

export interface NvrtcFunctions {
  nvrtcVersion(major: Out, minor: Out): number;
  nvrtcGetErrorString(status: number): string;
  nvrtcCreateProgram(
    program: Out,
    source: string,
    name: string,
    headerCount: number,
    headers: number,
    includeNames: number,
  ): number;
  nvrtcDestroyProgram(program: Out): number;
  nvrtcCompileProgram(program: number, optionCount: number, options: readonly string[]): number;
  nvrtcGetProgramLogSize(program: number, bytes: Out): number;
  nvrtcGetProgramLog(program: number, log: Uint8Array): number;
  nvrtcGetCUBINSize(program: number, bytes: Out): number;
  nvrtcGetCUBIN(program: number, image: Uint8Array): number;
}

export const nvrtcPrototypes: Prototypes<NvrtcFunctions> = {
  nvrtcVersion: "int nvrtcVersion(_Out_ int *major, _Out_ int *minor)",
  nvrtcGetErrorString: "const char *nvrtcGetErrorString(int status)",
  nvrtcCreateProgram:
    "int nvrtcCreateProgram(_Out_ uint64_t *program, const char *source, const char *name, int headerCount, " +
    "uint64_t headers, uint64_t includeNames)",
  nvrtcDestroyProgram: "int nvrtcDestroyProgram(_Inout_ uint64_t *program)",
  nvrtcCompileProgram: "int nvrtcCompileProgram(uint64_t program, int optionCount, const char **options)",
  nvrtcGetProgramLogSize: "int nvrtcGetProgramLogSize(uint64_t program, _Out_ size_t *bytes)",
  nvrtcGetProgramLog: "int nvrtcGetProgramLog(uint64_t program, void *log)",
  nvrtcGetCUBINSize: "int nvrtcGetCUBINSize(uint64_t program, _Out_ size_t *bytes)",
  nvrtcGetCUBIN: "int nvrtcGetCUBIN(uint64_t program, void *image)",
};

export const NVRTC_SUCCESS = 0;
export const NVRTC_ERROR_COMPILATION = 6;
