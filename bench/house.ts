import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, normalize, resolve } from 'node:path';
import { build } from 'esbuild';

const ROOMS = ['src', 'cli', 'profiles', 'schemas/gen'];
const IMPORT = /(?:from\s*|import\(\s*|import\s+)['"](\.[^'"]+)['"]/g;
const TYPE_IMPORT = /(?:import|export)\s+type\s[^'";]*?from\s*['"](\.[^'"]+)['"]/g;

/** What `--ceilings` lets pass. Not a goal: a new file with one importer is fine where it is a thought of its own. */
const CEILINGS = { circles: 0, exceptions: 10, onlyImporter: 225 };

/**
 * `node run.mjs bench/house.ts [--flows] [--ceilings]`: the size and the shape of the product's code, as JSON; with `--flows` also how many calls
 * and files of the tool an everyday command takes, counted by V8 while it runs against a service on the simulated driver. With `--ceilings` it
 * fails where the shape got worse.
 */
async function main(args: readonly string[]): Promise<void> {
  const files = ROOMS.flatMap(sources).filter((file) => !file.includes('.gen.'));
  const texts = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));
  const edges = new Map([...texts].map(([file, text]) => [file, targets(file, text, IMPORT)]));
  const importers = new Map<string, number>();
  for (const to of [...edges.values()].flatMap((all) => [...all])) importers.set(to, (importers.get(to) ?? 0) + 1);
  const lines = files.map((file) => texts.get(file)?.split('\n').length ?? 0).sort((a, b) => a - b);
  const noTypes = new Map(
    [...texts].map(([file, text]) => [file, targets(file, text.replace(TYPE_IMPORT, ''), IMPORT)]),
  );
  const circles = circlesOf(edges);
  const figures = {
    lines: lines.reduce((sum, n) => sum + n, 0),
    files: files.length,
    medianLines: lines[Math.floor(lines.length / 2)],
    edges: [...edges.values()].reduce((sum, to) => sum + to.size, 0),
    onlyImporter: files.filter((file) => importers.get(file) === 1).length,
    circles: circles.length,
    largestCircle: Math.max(0, ...circles.map((circle) => circle.length)),
    circlesWithoutTypes: circlesOf(noTypes).length,
    exceptions: exceptions(),
    ...(args.includes('--flows') ? { flows: await flows() } : {}),
  };
  console.log(JSON.stringify(figures, undefined, 2));
  const above = Object.entries(CEILINGS).filter(([name, most]) => figures[name as keyof typeof CEILINGS] > most);
  if (!args.includes('--ceilings') || above.length === 0) return;
  console.error(`above its ceiling: ${above.map(([name, most]) => `${name} (${most})`).join(', ')}`);
  process.exitCode = 1;
}

function sources(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return sources(path);
    return path.endsWith('.ts') ? [path] : [];
  });
}

function targets(file: string, text: string, pattern: RegExp): Set<string> {
  return new Set([...text.matchAll(pattern)].map((match) => normalize(join(dirname(file), match[1] ?? ''))));
}

/** Groups of files that reach each other by imports (Tarjan's algorithm). */
function circlesOf(edges: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const found: string[][] = [];
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const visit = (file: string): number => {
    const at = index.size;
    index.set(file, at);
    let lowest = at;
    stack.push(file);
    for (const to of edges.get(file) ?? []) {
      if (!edges.has(to)) continue;
      if (!index.has(to)) lowest = Math.min(lowest, visit(to));
      else if (stack.includes(to)) lowest = Math.min(lowest, index.get(to) ?? at);
    }
    low.set(file, lowest);
    if (lowest === at) {
      const circle = stack.splice(stack.indexOf(file));
      if (circle.length > 1) found.push(circle);
    }
    return lowest;
  };
  for (const file of edges.keys()) if (!index.has(file)) visit(file);
  return found;
}

/** Rows and entries of the import table that name one file instead of a room; what is open to all is none. */
function exceptions(): number {
  const text = readFileSync('test/architecture.test.ts', 'utf8');
  const table = text.slice(text.indexOf('const TABLE'), text.indexOf('const IMPORT'));
  const open = new Set(['src/json.ts', 'src/product.ts', 'src/errors.ts', 'src/service.ts', 'src/drivers/driver.ts']);
  return new Set([...table.matchAll(/'([^']+\.ts)'/g)].map((match) => match[1] ?? '').filter((file) => !open.has(file)))
    .size;
}

interface Flow {
  files: number;
  functions: number;
  calls: number;
}

async function flows(): Promise<Record<string, Flow>> {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-house-'));
  // Inside of node_modules, so that the packages are found.
  const folder = mkdtempSync(join(resolve('node_modules'), '.house-'));
  const program = join(folder, 'rdctl.mjs');
  await build({
    ...{ entryPoints: ['cli/main.ts'], outfile: program, bundle: true, packages: 'external', platform: 'node' },
    ...{ format: 'esm', target: 'node20', logLevel: 'warning' },
  });
  const env = {
    ...process.env,
    RDCTL_HOME: home,
    HOME: home,
    RDCTL_DRIVER: 'simulated',
    RDCTL_SIMULATED_LATENCY_MS: '0',
  };
  const rdctl = (argv: string[], more: Record<string, string> = {}) =>
    execFileSync(process.execPath, [program, ...argv], {
      env: { ...env, ...more },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  const modules = modulesOf(readFileSync(program, 'utf8'));
  const measured = (name: string, argv: string[]): [string, Flow] => {
    const coverage = join(folder, name);
    mkdirSync(coverage);
    rdctl(argv, { NODE_V8_COVERAGE: coverage });
    return [name, flowOf(coverage, basename(program), modules)];
  };
  const profile = (engine: string) => {
    const file = join(home, `${engine}.json`);
    const settings = { version: 19, containerEngine: { name: engine } };
    writeFileSync(file, JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', state: 'started', settings }));
    return file;
  };
  try {
    rdctl(['apply', '-f', profile('moby')]);
    return Object.fromEntries([
      measured('plan', ['plan', '-f', profile('containerd')]),
      measured('apply-nothing', ['apply', '-f', profile('moby')]),
      measured('apply-one-setting', ['apply', '-f', profile('containerd')]),
      measured('list-settings', ['list-settings']),
      measured('create-profile', ['create-profile', '--output', 'plist', '--from-settings']),
    ]);
  } finally {
    rdctl(['shutdown']);
    rmSync(folder, { recursive: true, force: true });
    rmSync(home, { recursive: true, force: true });
  }
}

/** Where each source file begins in a bundle: esbuild writes its path in front of it. */
function modulesOf(bundle: string): { at: number; file: string }[] {
  return [...bundle.matchAll(/^ *\/\/ ((?:src|cli|profiles|schemas)\/[^\n]+\.\w+)$/gm)].map((match) => ({
    at: match.index,
    file: match[1] ?? '',
  }));
}

function flowOf(coverage: string, program: string, modules: readonly { at: number; file: string }[]): Flow {
  const files = new Set<string>();
  let functions = 0;
  let calls = 0;
  for (const name of readdirSync(coverage)) {
    const { result } = JSON.parse(readFileSync(join(coverage, name), 'utf8'));
    for (const script of result) {
      if (!script.url.endsWith(`/${program}`)) continue;
      for (const { functionName, ranges } of script.functions) {
        const [{ startOffset, count }] = ranges;
        // What has no name is a module or a piece of the function around it; what is named as a file is a module that is loaded late.
        if (functionName === '' || functionName.includes('/') || count === 0) continue;
        const file = modules.findLast(({ at }) => at <= startOffset)?.file;
        if (file === undefined) continue;
        files.add(file);
        functions += 1;
        calls += count;
      }
    }
  }
  return { files: files.size, functions, calls };
}

await main(process.argv.slice(2));
