import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

interface Rule {
  /** Prefix of the importing files; the longest match decides. */
  module: string;
  /** Prefixes that may be imported. */
  may: readonly string[];
  /** Prefixes from which only types may be imported. */
  types?: readonly string[];
  because: string;
}

/** Open to all. */
const OPEN = ['src/json.ts', 'src/product.ts', 'src/errors.ts'];
/** These import only what is open to all and their own files. */
const GROUND = [...OPEN, 'src/os/', 'src/settings/'];
/** These use no files, clocks or processes; all others may use `src/os/`. */
const PURE = ['src/plan/', 'src/allowed-images/', 'src/events/'];

/** Which way imports point. `ARCHITECTURE.md` shows the same as a picture. */
const TABLE: readonly Rule[] = [
  { module: 'src/json.ts', may: [], because: 'it is open to all' },
  { module: 'src/product.ts', may: [], because: 'it is open to all' },
  { module: 'src/errors.ts', may: [], because: 'it is open to all' },
  { module: 'src/settings/', may: ['src/settings/'], because: 'pure code is where hard tests are cheap' },
  {
    module: 'src/plan/',
    may: ['src/plan/', 'src/allowed-images/'],
    types: ['src/drivers/driver.ts'],
    because: 'a plan is a function of settings, driver capabilities and what was observed, and does nothing',
  },
  {
    module: 'src/reconcile/',
    may: ['src/reconcile/', 'src/plan/'],
    types: ['src/drivers/driver.ts'],
    because: 'the loop must not know which machine it drives',
  },
  {
    module: 'src/events/',
    may: ['src/events/'],
    types: ['src/plan/', 'src/reconcile/'],
    because: 'what happened is a function of what was recorded and reported',
  },
  { module: 'src/os/', may: ['src/os/'], because: 'files, processes and clocks know nothing of desktops' },
  {
    module: 'src/state/',
    may: ['src/state/'],
    types: ['src/plan/', 'src/reconcile/', 'profiles/policies/'],
    because: 'what the service remembers knows nothing of what runs',
  },
  {
    module: 'src/features/extensions/',
    may: ['src/features/extensions/', 'src/state/'],
    types: ['src/drivers/driver.ts', 'src/plan/'],
    because: 'an extension is an image and a directory; which engine read the image does not matter',
  },
  {
    module: 'src/features/snapshots/',
    may: ['src/features/snapshots/', 'src/plan/', 'src/reconcile/', 'src/state/'],
    types: ['src/drivers/driver.ts'],
    because: 'a snapshot is a copy of files that a driver names, and a restore has the gate of the loop stop and start',
  },
  {
    module: 'src/features/diagnostics/',
    may: ['src/features/diagnostics/', 'src/features/host-integration/', 'src/state/'],
    types: ['src/drivers/driver.ts', 'src/reconcile/'],
    because: 'a check looks and changes nothing',
  },
  {
    module: 'src/features/port-forwards/',
    may: ['src/features/port-forwards/', 'src/plan/', 'src/state/'],
    types: ['src/drivers/driver.ts', 'src/reconcile/'],
    because: 'a forward is a listener and a way into some cluster',
  },
  {
    module: 'src/features/service-units/',
    may: ['src/features/service-units/', 'src/state/linked-file.ts'],
    because: 'a unit is a file, perhaps among dotfiles, and some calls of the service manager; what it starts is given',
  },
  {
    module: 'src/features/upgrade/',
    may: ['src/features/upgrade/'],
    because: 'what a release is and how a program is replaced does not depend on desktops',
  },
  {
    module: 'src/features/host-integration/',
    may: ['src/features/host-integration/', 'src/plan/', 'src/state/'],
    types: ['src/drivers/driver.ts', 'src/reconcile/'],
    because: 'it edits files of a user, and hears from the loop what runs',
  },
  {
    module: 'src/drivers/guest-images/',
    may: ['src/drivers/guest-images/', 'src/state/'],
    because: 'an image is files with sums; which machine is made from it does not matter',
  },
  {
    module: 'src/allowed-images/',
    may: ['src/allowed-images/'],
    because: 'whether an image is allowed is a function of its name and the patterns',
  },
  {
    module: 'src/drivers/driver.ts',
    may: [],
    types: ['src/settings/'],
    because: 'only plain data crosses the interface',
  },
  {
    module: 'src/drivers/machines/simulated/',
    may: [
      'src/drivers/machines/simulated/',
      'src/drivers/machines/shared/',
      'src/drivers/image-layers/',
      'src/allowed-images/',
    ],
    types: ['src/drivers/driver.ts'],
    because: 'a driver is removed by deleting its folder',
  },
  {
    module: 'src/drivers/machines/host/',
    may: ['src/drivers/machines/host/', 'src/drivers/machines/shared/', 'src/drivers/shell.ts', 'src/state/'],
    types: ['src/drivers/driver.ts'],
    because: 'a driver is removed by deleting its folder',
  },
  {
    module: 'src/drivers/machines/qemu/',
    may: [
      'src/drivers/machines/qemu/',
      'src/drivers/machines/shared/',
      'src/drivers/shell.ts',
      'src/drivers/guest-images/',
      'src/state/',
    ],
    types: ['src/drivers/driver.ts'],
    because: 'a driver is removed by deleting its folder',
  },
  {
    module: 'src/drivers/machines/shared/',
    may: ['src/drivers/machines/shared/'],
    types: ['src/drivers/driver.ts', 'src/drivers/shell.ts'],
    because: 'what machines have in common knows none of them',
  },
  {
    module: 'src/drivers/image-layers/',
    may: ['src/drivers/image-layers/'],
    types: ['src/drivers/driver.ts'],
    because: 'layers are archives; which engine keeps them does not matter',
  },
  {
    module: 'src/drivers/engines/',
    may: [
      'src/drivers/engines/',
      'src/drivers/image-layers/',
      'src/allowed-images/',
      'src/drivers/shell.ts',
      'src/state/',
    ],
    types: ['src/drivers/driver.ts'],
    because: 'an engine runs inside a machine and knows nothing about which one',
  },
  {
    module: 'src/drivers/clusters/',
    may: ['src/drivers/clusters/', 'src/drivers/shell.ts', 'src/state/'],
    types: ['src/drivers/driver.ts'],
    because: 'a cluster runs on an engine inside a machine, and is handed both',
  },
  {
    module: 'src/drivers/',
    may: ['src/drivers/', 'src/state/'],
    because: 'it knows all drivers, and what they record in a home, whether or not anything runs',
  },
  {
    module: 'src/api/document-schemas.ts',
    may: ['schemas/', 'src/api/'],
    because: 'requests are checked by, and the description of the API shows, the schemas of the documents as they are',
  },
  {
    module: 'src/api/',
    may: ['src/api/', 'src/reconcile/', 'src/plan/', 'src/events/'],
    types: [
      'src/drivers/driver.ts',
      'src/features/diagnostics/',
      'src/features/extensions/',
      'src/features/host-integration/',
      'src/features/port-forwards/',
      'src/features/snapshots/',
      'src/service/',
      'src/state/',
    ],
    because: 'routes translate; they do not decide, and they know of the rest only what their ports name',
  },
  {
    module: 'src/client/',
    may: ['src/client/', 'src/plan/', 'src/state/', 'src/allowed-images/', 'src/events/'],
    types: [
      'src/reconcile/',
      'src/drivers/driver.ts',
      'src/features/diagnostics/',
      'profiles/policies/',
      'src/features/snapshots/',
    ],
    because: 'the client loop reaches the system only by the API',
  },
  {
    module: 'src/client/rancher-desktop/',
    may: ['src/client/', 'src/plan/', 'src/state/'],
    types: ['src/reconcile/'],
    because: 'another application is driven by the same client, and knows nothing of our service',
  },
  {
    module: 'src/service.ts',
    may: ['src/', 'profiles/policies/'],
    because: 'it is the one composition root',
  },
  {
    module: 'src/service/',
    may: [
      'src/service/',
      'src/allowed-images/',
      'src/client/',
      'src/drivers/',
      'src/events/',
      'src/features/',
      'src/plan/',
      'src/reconcile/',
      'src/state/',
      'profiles/policies/',
    ],
    because: 'its parts are opened by the composition root, which alone gives them to the API',
  },
  {
    module: 'profiles/document/',
    may: ['profiles/document/', 'profiles/formats/'],
    because: 'documents are read and written with no service running',
  },
  {
    module: 'profiles/check/',
    may: ['profiles/check/', 'profiles/document/', 'profiles/formats/'],
    because: 'what releases make of a profile is a function of what stands in it',
  },
  {
    module: 'profiles/formats/',
    may: ['profiles/formats/'],
    because: 'a format is text and values, the same for the service that obeys it and for the tool that shows it',
  },
  {
    module: 'profiles/policies/',
    may: ['profiles/policies/', 'profiles/formats/', 'src/state/'],
    types: ['src/plan/'],
    because: 'what an administrator wrote is the same for the service and for a plan without one',
  },
  {
    module: 'cli/commands/serve.ts',
    may: ['cli/', 'src/client/', 'src/state/', 'src/service.ts', 'src/service/stop-left.ts'],
    types: ['src/plan/', 'src/reconcile/'],
    because: 'the one command that is the service; it loads it lazily',
  },
  {
    module: 'cli/commands/init/',
    may: ['cli/', 'schemas/'],
    because: 'the schema of profiles is written beside a profile as it is',
  },
  {
    module: 'cli/',
    may: [
      'cli/',
      'src/client/',
      'src/events/',
      // What needs no service: guest images, the way into what this home's records name, the driver of a first start.
      'src/drivers/guest-images/',
      'src/drivers/backend-access.ts',
      'src/drivers/log-places.ts',
      'src/drivers/index.ts',
      'src/features/host-integration/',
      'src/features/service-units/',
      'src/features/upgrade/',
      'src/allowed-images/',
      'src/plan/port-forwards.ts',
      // Names of what people consent to.
      'src/plan/losses.ts',
      'src/features/snapshots/',
      'src/state/',
      'profiles/',
    ],
    types: ['src/plan/', 'src/reconcile/', 'src/drivers/driver.ts'],
    because: 'the tool reaches the system only by the API',
  },
];

/** Folders of which others import the index alone. */
const DOORS: readonly { folder: string; because: string }[] = [
  {
    folder: 'src/client/rancher-desktop/',
    because: 'what concerns another application is behind one door, and its clients carry what differs',
  },
];

const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s)?(?:[^'";]*?from\s*)?['"](\.[^'"]+)['"]|import\(\s*['"](\.[^'"]+)['"]\s*\)/g;

function files(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return files(path);
    return path.endsWith('.ts') ? [path] : [];
  });
}

function ground(file: string): string[] {
  const within = (prefixes: string[]) => prefixes.some((prefix) => file.startsWith(prefix));
  if (within(GROUND)) return [];
  return within(PURE) ? ['src/settings/'] : ['src/settings/', 'src/os/'];
}

function ruleOf(file: string): Rule | undefined {
  return TABLE.filter((row) => file.startsWith(row.module)).sort((a, b) => b.module.length - a.module.length)[0];
}

function violations(file: string, text: string): string[] {
  const rule = ruleOf(file);
  if (!rule) return [`${file}: no row of the import table covers it`];
  const found: string[] = [];
  for (const match of text.matchAll(IMPORT)) {
    const specifier = match[3] ?? match[4] ?? '';
    const target = relative(process.cwd(), resolve(dirname(file), specifier)).replaceAll('\\', '/');
    const allowed = [...OPEN, ...ground(file), ...rule.may, ...(match[2] ? (rule.types ?? []) : [])];
    if (!allowed.some((prefix) => target.startsWith(prefix))) {
      found.push(`${file} imports ${match[2] ? 'types of ' : ''}${target}: not allowed, because ${rule.because}`);
    }
    const closed = DOORS.find(({ folder }) => target.startsWith(folder) && !file.startsWith(folder));
    if (closed && target !== `${closed.folder}index.ts`) {
      found.push(`${file} imports ${target}: not allowed, because ${closed.because}`);
    }
  }
  return found;
}

test('imports point one way', () => {
  const all = ['src', 'cli', 'profiles'].flatMap(files).map((path) => path.replaceAll('\\', '/'));
  expect(all.length).toBeGreaterThan(10);
  expect(all.flatMap((file) => violations(file, readFileSync(file, 'utf8')))).toEqual([]);
});

/** The second line of a folder's README. */
function importsLine(folder: string): string {
  const { may = [], types = [] } = ruleOf(`${folder}/`) ?? {};
  const names = (prefixes: readonly string[]) => prefixes.map((prefix) => `\`${prefix.replace(/\/$/, '')}\``);
  const others = [...ground(`${folder}/`), ...may].filter(
    (prefix) => prefix === 'src/' || !`${folder}/`.startsWith(prefix),
  );
  const all = [...names([...new Set(others)]), ...names(types).map((name) => `types of ${name}`)];
  return `May import: ${all.length === 0 ? 'nothing else' : all.join(', ')}.`;
}

test('each folder of several files says what it is, what it may import, and where to begin', async () => {
  const folders = new Map<string, string[]>();
  for (const file of ['src', 'cli', 'profiles'].flatMap(files)) {
    if (dirname(file) !== 'src') folders.set(dirname(file), [...(folders.get(dirname(file)) ?? []), file]);
  }
  for (const [folder, { length }] of folders) {
    if (length < 4) continue;
    const readme = join(folder, 'README.md');
    const [what = '', , begin = ''] = readFileSync(readme, 'utf8').split('\n');
    expect(begin, readme).toMatch(/^Begin with /);
    const named = [...`${what} ${begin}`.matchAll(/`([\w./-]+\.(?:ts|json))`/g)].map(([, name = '']) => name);
    expect(
      named.filter((name) => !existsSync(name) && !existsSync(join(folder, name))),
      readme,
    ).toEqual([]);
    await expect([what, importsLine(folder), begin, ''].join('\n')).toMatchFileSnapshot(resolve(readme));
  }
});

test('the check detects a forbidden import, including a lazy one and one without bindings', () => {
  expect(violations('cli/x.ts', "import '../src/api/app.ts';")).toHaveLength(1);
  expect(violations('cli/x.ts', "import { a } from '../src/api/app.ts';")).toHaveLength(1);
  expect(violations('cli/x.ts', "const a = await import('../src/api/app.ts');")).toHaveLength(1);
  expect(violations('cli/x.ts', "import type { Plan } from '../src/plan/change.ts';")).toEqual([]);
  expect(violations('cli/x.ts', "import { makePlan } from '../src/plan/plan.ts';")).toHaveLength(1);
  expect(violations('cli/x.ts', "import '../src/client/rancher-desktop/plan.ts';")).toHaveLength(1);
  expect(violations('cli/x.ts', "import '../src/client/rancher-desktop/index.ts';")).toEqual([]);
});

/** Groups of files that reach each other by imports, those of types included: leaves are taken away until none is left. */
function circles(edges: ReadonlyMap<string, readonly string[]>): string[] {
  let left = [...edges.keys()];
  for (;;) {
    const rest = new Set(left);
    const inner = left.filter((file) => edges.get(file)?.some((to) => rest.has(to)));
    if (inner.length === left.length) return left;
    left = inner;
  }
}

test('no circle of imports, types included', () => {
  const all = ['src', 'cli', 'profiles', 'schemas/gen'].flatMap(files).map((path) => path.replaceAll('\\', '/'));
  const edges = new Map(
    all.map((file) => {
      const found = readFileSync(file, 'utf8').matchAll(IMPORT);
      return [file, [...found].map((match) => join(dirname(file), match[3] ?? match[4] ?? '').replaceAll('\\', '/'))];
    }),
  );
  // What remains has a circle in it, or reaches one.
  expect(circles(edges)).toEqual([]);
  expect(circles(new Map([...edges, ['x.ts', ['y.ts']], ['y.ts', ['x.ts']]]))).toEqual(['x.ts', 'y.ts']);
});

test('no connection or program stops being listened to for errors after its first', () => {
  const once = ['src', 'cli', 'profiles']
    .flatMap(files)
    .flatMap((file) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .map((line) => `${file}: ${line.trim()}`),
    )
    .filter((line) => line.includes("once('error'"))
    // A server has one error before it listens; the log has another listener.
    .filter((line) => !/server\.once|src.os.log-file\.ts/.test(line));
  expect(once).toEqual([]);
});

test('only one folder spawns programs', () => {
  const spawning = ['src', 'cli', 'profiles']
    .flatMap(files)
    .filter((file) => /from 'node:child_process'/.test(readFileSync(file, 'utf8')))
    .filter((file) => !file.startsWith('src/os/'));
  expect(spawning).toEqual([]);
});
