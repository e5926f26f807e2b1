// What computes the model: the version of ONNX Runtime, found by loading it (a library that is missing or for another platform
// throws here), and whether its sessions have Flywheel's own operations.

export async function runtimeVersion(): Promise<string> {
  const { runtimeVersions } = await import("../graph/onnx-runtime.ts");
  return runtimeVersions.node ?? runtimeVersions.common;
}

export interface Kernels {
  kernels: "native" | "graph";
  /** Which native ones, or why there are none, for people. */
  detail: string;
}

export async function kernelsHere(): Promise<Kernels> {
  const { nativeModule, nativeModuleKind, nativeModuleMissing } = await import("../graph/native/native-module.ts");
  return nativeModule === null
    ? { kernels: "graph", detail: nativeModuleMissing }
    : { kernels: "native", detail: nativeModuleKind };
}
