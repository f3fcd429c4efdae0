// `import { source } from './NAME.ts?source'` gives that module, bundled with all that it imports, as the text of a script. A worker
// thread is started from it: the built tool is a handful of bundles without packages, and tests run the sources.
import { build } from 'esbuild';

const FILTER = /\.ts\?source$/;

async function moduleOf(id) {
  const { outputFiles } = await build({
    entryPoints: [id.replace(/\?source$/, '')],
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    write: false,
    logLevel: 'warning',
  });
  return `export const source = ${JSON.stringify(outputFiles[0].text)};`;
}

/** For the bundles of `build.mjs` and `run.mjs`. */
export const workerSource = {
  name: 'workers as text',
  setup({ onLoad, onResolve, resolve }) {
    onResolve({ filter: FILTER }, async ({ path, resolveDir, kind }) => {
      const { path: file, errors } = await resolve(path.replace(/\?source$/, ''), { resolveDir, kind });
      return { path: `${file}?source`, namespace: 'worker-source', errors };
    });
    onLoad({ filter: FILTER, namespace: 'worker-source' }, async ({ path }) => ({ contents: await moduleOf(path) }));
  },
};

/** For the tests. */
export const viteWorkerSource = {
  name: 'workers as text',
  enforce: 'pre',
  load: (id) => (FILTER.test(id) ? moduleOf(id) : undefined),
};
