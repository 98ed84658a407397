/** The functions of NVRTC that Braid calls, with their names in nvrtc.h. */
import type { FunctionsOf, Prototypes } from "./native-library.ts";

export const nvrtcPrototypes = {
  nvrtcVersion: "int nvrtcVersion(_Out_ int *major, _Out_ int *minor)",
  nvrtcGetErrorString: "const char *nvrtcGetErrorString(int status)",
  nvrtcCreateProgram:
    "int nvrtcCreateProgram(_Out_ uint64_t *program, const char *source, const char *name, int headerCount, \
    uint64_t headers, uint64_t includeNames)",
  nvrtcDestroyProgram: "int nvrtcDestroyProgram(_Inout_ uint64_t *program)",
  nvrtcCompileProgram: "int nvrtcCompileProgram(uint64_t program, int optionCount, const char **options)",
  nvrtcGetProgramLogSize: "int nvrtcGetProgramLogSize(uint64_t program, _Out_ size_t *bytes)",
  nvrtcGetProgramLog: "int nvrtcGetProgramLog(uint64_t program, void *log)",
  nvrtcGetCUBINSize: "int nvrtcGetCUBINSize(uint64_t program, _Out_ size_t *bytes)",
  nvrtcGetCUBIN: "int nvrtcGetCUBIN(uint64_t program, void *image)",
} as const satisfies Prototypes;

export type NvrtcFunctions = FunctionsOf<typeof nvrtcPrototypes>;

export const NVRTC_SUCCESS = 0;
export const NVRTC_ERROR_COMPILATION = 6;
