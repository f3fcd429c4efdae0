// Runs one TypeScript file of the development tools: bundled to a temporary file with the packages left outside.
import { mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const [entry, ...rest] = process.argv.slice(2);
if (!entry) {
  process.stderr.write('usage: node run.mjs FILE.ts [arguments]\n');
  process.exit(1);
}
const folder = mkdtempSync(join(resolve('node_modules'), '.run-'));
try {
  const outfile = join(folder, 'main.mjs');
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
  });
  process.argv = [process.argv[0], resolve(entry), ...rest];
  await import(pathToFileURL(outfile).href);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
