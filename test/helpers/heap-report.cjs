// Loaded into a service by `NODE_OPTIONS=--require`, or `BUN_OPTIONS=--preload` for the standalone file: on SIGUSR2, writes the bytes that are
// in use after a garbage collection to a file.
const { renameSync, writeFileSync } = require('node:fs');

const file = process.env.RDCTL_TEST_HEAP_REPORT;
const collect = collector();
process.on('SIGUSR2', () => {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  writeFileSync(`${file}.part`, String(heapUsed + external));
  renameSync(`${file}.part`, file);
});

function collector() {
  if (process.versions.bun) return () => globalThis.Bun.gc(true);
  require('node:v8').setFlagsFromString('--expose-gc');
  return require('node:vm').runInNewContext('gc');
}
