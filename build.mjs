// Builds dist/: a small entry and one file per lazy import of it, everything bundled, so that it runs without packages.
// Usage: node build.mjs [--out-dir DIR] [--no-cache]
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { build } from 'esbuild';

// What is made here is run: nobody else may write it, whatever the umask of the caller allows.
process.umask(process.umask() | 0o022);
const { outDir, cache } = options(process.argv.slice(2));
/** How long the service of the warm-up may take to end. */
const STOP_MS = 30_000;
const ERRORS = resolve('src/errors.ts');
const LOADER = resolve('cli/code-cache.ts');
/** Files whose lazy imports become files of their own; all others are loaded late from the file they are bundled into. */
const SPLITTING = [
  'cli/commands.ts',
  'cli/commands/apply/run.ts',
  'cli/commands/plan/next-driver.ts',
  'cli/commands/plan/plan-for.ts',
  'cli/group.ts',
  'cli/main.ts',
  'cli/run.ts',
  'profiles/policies/read.ts',
  'src/api/routes/listings.ts',
  'src/client/connection-file.ts',
  'src/client/discovery.ts',
  'src/client/http.ts',
  'src/drivers/engines/gateways.ts',
  'src/drivers/engines/moby.ts',
  'src/features/host-integration/kube-config.ts',
  'src/features/host-integration/launcher.ts',
  'src/service/metrics.ts',
  'src/settings/check.ts',
  'src/state/settings-file.ts',
].map((file) => resolve(file));

/** @type {import('esbuild').BuildOptions} */
const COMMON = {
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  // Identifiers stay: stack traces of bug reports name functions.
  minifyWhitespace: true,
  minifySyntax: true,
  supported: { 'dynamic-import': false },
  tsconfig: 'release/tsconfig.bundle.json',
  // The licenses are in a file of their own, whole.
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  absWorkingDir: process.cwd(),
};

const chunks = new Map();
/** What esbuild says of each build. */
const metafiles = [];

/** Turns `import('./commands/plan.ts')` into a call of the loader, and notes the file. */
const splitting = {
  name: 'split lazy imports',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /./ }, ({ kind, path, importer, resolveDir }) => {
      if (kind !== 'dynamic-import' || path.startsWith('node:') || !SPLITTING.includes(importer)) return undefined;
      const file = path.startsWith('.') ? resolve(resolveDir, path) : path;
      const name = basename(file, '.ts');
      if ((chunks.get(name) ?? file) !== file) throw new Error(`two lazy imports are called ${name}`);
      chunks.set(name, file);
      return { path: name, namespace: 'chunk' };
    });
    onLoad({ filter: /.*/, namespace: 'chunk' }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(LOADER)}).loadChunk(__dirname, ${JSON.stringify(path)}, require);`,
      resolveDir: process.cwd(),
    }));
  },
};

/** Chunks use the error catalogue of the entry. */
const sharedErrors = {
  name: 'share the error catalogue',
  setup({ onResolve }) {
    onResolve({ filter: /errors\.ts$/ }, ({ path, resolveDir }) =>
      resolve(resolveDir, path) === ERRORS ? { path: 'rdctl:errors', external: true } : undefined,
    );
  },
};

const { lateBuiltins } = await fromRelease('late-builtins.ts');
rmSync(outDir, { recursive: true, force: true });
const entry = join(outDir, 'rdctl.cjs');
const { metafile } = await build({
  ...COMMON,
  entryPoints: ['cli/main.ts'],
  outfile: entry,
  plugins: [splitting, lateBuiltins],
});
metafiles.push(metafile);
chmodSync(entry, 0o755);
writeLauncher(join(outDir, 'rdctl-app.cjs'));
// A chunk may have lazy imports too, so there is a next round until none is new.
for (const built = new Set(); built.size < chunks.size; ) {
  const entryPoints = Object.fromEntries([...chunks].filter(([name]) => !built.has(name)));
  for (const name of Object.keys(entryPoints)) built.add(name);
  const { metafile } = await build({
    ...COMMON,
    entryPoints,
    outdir: outDir,
    outExtension: { '.js': '.cjs' },
    // What Node puts around a module; the loader does not.
    banner: { js: '(function (exports, require, module, __filename, __dirname) {' },
    footer: { js: '})' },
    plugins: [splitting, sharedErrors, lateBuiltins],
  });
  metafiles.push(metafile);
}
for (const name of chunks.keys()) checkAscii(join(outDir, `${name}.cjs`));
writeFileSync(
  join(outDir, 'THIRD-PARTY-LICENSES.txt'),
  (await fromRelease('dist-licenses.ts')).distLicenses(metafiles),
);
if (cache) await warm();

/** What `npm run dist` uses as well, which is TypeScript. */
async function fromRelease(name) {
  const { outputFiles } = await build({
    entryPoints: [`release/${name}`],
    bundle: true,
    platform: 'node',
    format: 'esm',
    write: false,
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);
}

/**
 * The executable for clients that start the application themselves, with its arguments and no command: it runs the service.
 * One of ours starts it with a command, which stays.
 */
function writeLauncher(file) {
  const lines = [
    '#!/usr/bin/env node',
    "const own = process.argv[2] === 'serve' ? [] : ['serve', '--power=started', '--as-application', '--'];",
    "process.argv.splice(1, 1, require.resolve('./rdctl.cjs'), ...own);",
    "require('./rdctl.cjs');",
  ];
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  chmodSync(file, 0o755);
}

function options(argv) {
  const at = argv.indexOf('--out-dir');
  return { outDir: resolve(at < 0 ? 'dist' : argv[at + 1]), cache: !argv.includes('--no-cache') };
}

/** The loader reads one byte per character. */
function checkAscii(file) {
  if (readFileSync(file).some((byte) => byte > 127)) throw new Error(`${relative('.', file)} is not ASCII`);
}

/** Runs the commands once against a simulated desktop, so that each leaves its compiled code beside it. */
async function warm() {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-build-'));
  // A variable that names a service of the user, or a secret of it, must not reach these runs.
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('RDCTL_') && name !== 'NODE_OPTIONS',
  );
  const env = { ...Object.fromEntries(inherited), RDCTL_HOME: home, RDCTL_DRIVER: 'simulated' };
  const profile = 'examples/moby.yaml';
  const lines = [
    ['version'],
    ['help'],
    ['list-settings'],
    ['status'],
    ['info'],
    ['__complete', 'set', '--container-engine.name', ''],
    ['completion', 'bash'],
    ['create-profile', '--from-settings', '--output', 'reg'],
    ['api', '/'],
    ['set', '--containers.show-all=true'],
    ['init'],
    ...(existsSync(profile) ? ['validate', 'plan', 'diff', 'apply', 'apply'].map((name) => [name, '-f', profile]) : []),
    ['start'],
    ['shutdown'],
  ];
  try {
    const service = spawn(process.execPath, [entry, 'serve', '--power=started', `--port=${await freePort()}`], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const closed = new Promise((done) => service.once('close', done));
    try {
      await listening(service);
      for (const line of lines) await finish(line, env);
      await within(STOP_MS, closed);
    } finally {
      service.kill();
    }
  } catch (error) {
    process.stderr.write(`The code cache was not made (start-up will be slower at first): ${error.message}\n`);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Not the port that other programs look for. */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** Rejects when the promise is not fulfilled in time. */
async function within(ms, promise) {
  const late = new AbortController();
  const limit = delay(ms, undefined, { signal: late.signal }).then(() => {
    throw new Error(`the simulated service did not end within ${ms / 1000} s`);
  });
  await Promise.race([promise, limit]).finally(() => late.abort());
}

/** Resolves with the first line that the service prints, which it does when it listens. */
function listening(service) {
  return new Promise((done, fail) => {
    let text = '';
    const timer = setTimeout(() => fail(new Error('the service does not listen')), 30_000);
    service.stderr.on('data', (part) => {
      text += part;
      if (text.includes('listens on')) {
        clearTimeout(timer);
        done();
      }
    });
    service.once('close', () => {
      clearTimeout(timer);
      fail(new Error(text.trim() || 'the service ended'));
    });
  });
}

async function finish(line, env) {
  // What a command answers does not matter here: plan and diff have exit codes that mean something.
  await promisify(execFile)(process.execPath, [entry, ...line], { env, timeout: 60_000 }).catch((error) => {
    if (error.killed) throw error;
  });
}
