import type { Plugin } from 'esbuild';

/** Parts of Node that take milliseconds to load and that most runs never call. */
const COSTLY = [
  'node:crypto',
  'node:child_process',
  'node:fs/promises',
  'node:os',
  'node:timers/promises',
  'node:util',
];

/** Our own imports of those load them at the first call. Packages keep theirs. */
export const lateBuiltins: Plugin = {
  name: 'load costly builtins late',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path, importer, namespace }) =>
      COSTLY.includes(path) && namespace === 'file' && !importer.includes('node_modules')
        ? { path, namespace: 'late', sideEffects: false }
        : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'late' }, async ({ path }) => {
      const names = Object.entries(await import(path)).filter(
        ([name, value]) => name !== 'default' && isFunction(value),
      );
      const line = ([name]: [string, unknown]) =>
        `export const ${name} = (...args) => process.getBuiltinModule(${JSON.stringify(path)}).${name}(...args);`;
      return { contents: names.map(line).join('\n') };
    });
  },
};

/** A class cannot be called; an import of one fails the build. */
function isFunction(value: unknown): boolean {
  return typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value));
}
