import { mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import type { Declared } from './declaration.ts';

/** Bundles a module as it is on disk now and returns the text that its `render` makes of the declared settings. */
export async function bundled(entry: string, declared: readonly Declared[]): Promise<string> {
  const folder = mkdtempSync(join(resolve('node_modules'), '.gen-'));
  try {
    const outfile = join(folder, 'module.mjs');
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
    const module: { render?: (declared: readonly Declared[]) => string } = await import(pathToFileURL(outfile).href);
    if (!module.render) throw new Error(`${entry}: no render function`);
    return module.render(declared);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
