// The version of ONNX Runtime, found by loading it: a library that is missing or for another platform throws here.

export async function runtimeVersion(): Promise<string> {
  const { runtimeVersions } = await import("../graph/onnx-runtime.ts");
  return runtimeVersions.node ?? runtimeVersions.common;
}
