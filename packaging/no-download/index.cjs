// In a checkout, this takes the place of global-agent (`overrides` in package.json). Its only user is the install script of
// onnxruntime-node, which begins with `bootstrap()` and then downloads CUDA libraries that Flywheel does not use. npm 11
// and newer skip that script (`allowScripts`); older versions run it, and this ends it.
exports.bootstrap = () => process.exit(0);
