// What computes the model: the version of ONNX Runtime, found by loading it (a library that is missing or for another platform
// throws here), and whether its sessions have Flywheel's own operations.

export async function runtimeVersion(): Promise<string> {
  const { runtimeVersions } = await import("../graph/onnx-runtime.ts");
  return runtimeVersions.node ?? runtimeVersions.common;
}

export interface Kernels {
  kernels: "native" | "graph";
  /** Why they are not native; "" if they are. */
  reason: string;
}

export async function kernelsHere(): Promise<Kernels> {
  const { nativeModule, nativeModuleMissing } = await import("../graph/native/native-module.ts");
  return { kernels: nativeModule === null ? "graph" : "native", reason: nativeModuleMissing };
}
