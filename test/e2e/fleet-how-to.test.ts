import { execFile } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { builtTool } from '../helpers/built-tool.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const { entry } = builtTool();

/** A command of a document and what the document says that it prints. */
interface Shown {
  command: string;
  printed: string[];
}

/** The commands of the `console` blocks below a heading. */
function shown(file: string, heading: string): Shown[] {
  const text = readFileSync(file, 'utf8');
  const level = /^#+/.exec(heading)?.[0].length ?? 1;
  const from = text.indexOf(`\n${heading}\n`);
  expect(from, `${file} has the heading ${heading}`).toBeGreaterThan(0);
  const rest = text.slice(from + heading.length + 2);
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  const part = end === -1 ? rest : rest.slice(0, end);
  return [...part.matchAll(/^```console\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((each): Shown => {
        // A command goes on in lines that begin as the shell asks for them.
        const [command = '', ...printed] = each.trimEnd().replaceAll('\\\n> ', '').split('\n');
        return { command: command.replace(/^npx /, ''), printed };
      }),
  );
}

/** Runs a command line of a document in a directory, as a person would who has rdctl on the path. */
function runner(directory: string) {
  const bin = join(directory, 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'rdctl'), `#!/bin/sh\nexec '${process.execPath}' '${entry()}' "$@"\n`, { mode: 0o755 });
  const env = {
    PATH: `${bin}:${process.env.PATH ?? ''}`,
    HOME: directory,
    RDCTL_HOME: join(directory, 'home'),
    XDG_CONFIG_HOME: join(directory, '.config'),
  };
  return (command: string): Promise<string> =>
    new Promise((done) => {
      // Both streams in one, as a terminal shows them.
      execFile('sh', ['-c', `( ${command} ) 2>&1`], { cwd: directory, env }, (_, stdout) => done(stdout));
    });
}

/** What the document shows as a pattern of the whole output: a line `…` stands for any lines, `…/` for the directory. */
function pattern(printed: readonly string[]): RegExp {
  const lines = printed.map((line) =>
    line === '…' ? '(?:.*\n)*?' : `${line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}\n`,
  );
  return new RegExp(`^${lines.join('')}$`);
}

function asShown(output: string, directory: string): string {
  const lines = output
    .replaceAll(`${directory}/.config/rancher-desktop.`, '/etc/rancher-desktop/')
    .replaceAll(`${directory}/home/config/`, '/home/you/.config/rdctl/')
    .replaceAll(`rdctl at ${directory}/home`, 'rdctl at /home/you/.local/share/rdctl')
    .replaceAll(directory, '…')
    .trimEnd();
  return lines === '' ? '' : `${lines}\n`;
}

/** A time or a duration is another one in every run. */
const timeless = (text: string) => text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').replace(/\d+ ms/g, 'N ms');

async function checkAll(all: readonly Shown[], directory: string): Promise<void> {
  const run = runner(directory);
  expect(all.length).toBeGreaterThan(0);
  for (const { command, printed } of all) {
    const output = asShown(await run(command), directory);
    expect(timeless(output), `$ ${command}`).toMatch(pattern(printed.map(timeless)));
  }
}

/** A clone of the repository, as far as the documents use it. */
function scene(): string {
  const directory = temporaryDirectory();
  cpSync('examples', join(directory, 'examples'), { recursive: true });
  return directory;
}

const DOCUMENT = 'docs/fleet-profiles.md';

describe('what the documents show is what happens', () => {
  test('the README, as a new user', async () => {
    const directory = scene();
    try {
      await checkAll(shown('README.md', '## For fleets'), directory);
    } finally {
      await runner(directory)('rdctl shutdown');
    }
    expect(readFileSync(join(directory, 'old.yaml'), 'utf8')).toContain('adminAccess: false   # nobody is asked');
  });

  test('from a profile to deployment files, onto a Linux computer, and back', async () => {
    const directory = scene();
    await checkAll(shown(DOCUMENT, '## From a profile to deployment files'), directory);
    mkdirSync(join(directory, '.config'));
    for (const part of ['locked', 'defaults']) {
      const place = join(directory, '.config', `rancher-desktop.${part}.json`);
      copyFileSync(join(directory, 'linux', `${part}.json`), place);
    }
    await checkAll(shown(DOCUMENT, '### Linux packages'), directory);
    await checkAll(shown(DOCUMENT, '## Reading deployment files'), directory);
    expect(JSON.parse(readFileSync(join(directory, 'report.json'), 'utf8'))).toMatchObject({
      kind: 'ImportReport',
      counts: { kept: 8, changed: 0, lost: 0 },
    });
  });

  test('what counts on one computer', async () => {
    const directory = scene();
    const document = 'docs/policies.md';
    const [, locked = ''] = /```json\n([\s\S]*?)```/.exec(readFileSync(document, 'utf8')) ?? [];
    mkdirSync(join(directory, '.config'));
    writeFileSync(join(directory, '.config/rancher-desktop.locked.json'), locked);
    const defaults = JSON.stringify({ version: 19, images: { namespace: 'team' } });
    writeFileSync(join(directory, '.config/rancher-desktop.defaults.json'), defaults);
    const run = runner(directory);
    try {
      await run('rdctl start --driver simulated');
      await checkAll(shown(document, '## Seeing what counts'), directory);
    } finally {
      await run('rdctl shutdown');
    }
  });

  test('which releases accept a profile', async () => {
    await checkAll(shown(DOCUMENT, '## Which releases accept a profile'), scene());
  });
});

describe('the README runs', () => {
  const commands = () => shown('README.md', '## For fleets').map(({ command }) => command);

  test.each(['create-profile', 'import-profile', 'profile check', 'profile upgrade'])(
    '%s with each of its flags',
    async (name) => {
      const [, own = ''] = (await runner(scene())(`rdctl ${name} --help`)).split(/^Flags.*:$/m);
      const flags = [...own.matchAll(/^ +(?:-\w, +)?(--[\w-]+)/gm)].map(([, flag = '']) => flag);
      expect(flags.length).toBeGreaterThan(3);
      const runs = commands().filter((command) => command.startsWith(`rdctl ${name} `));
      const words = new Set(
        runs.flatMap((command) => command.split(' ')).map((word) => (word === '-o' ? '--output' : word)),
      );
      expect(flags.filter((flag) => !words.has(flag))).toEqual([]);
    },
  );

  test.each(['plist', 'mobileconfig', 'reg', 'json', 'admx'])('an export as %s', (format) => {
    expect(commands().filter((command) => command.includes(`create-profile --output ${format} `))).not.toEqual([]);
  });

  test.each(['.plist', '.mobileconfig', '.reg', '.pol', '.json'])('reading of a file %s', (ending) => {
    const readers = commands().filter((command) => /^rdctl (import-profile|diff) /.test(command));
    expect(readers.filter((command) => command.split(' ').some((word) => word.endsWith(ending)))).not.toEqual([]);
  });

  test('the choices of parts, hives, inputs and sides', () => {
    const all = commands().join('\n');
    const choices = [
      '--type defaults',
      '--hive hkcu',
      '--part defaults',
      '--encoding utf-16le',
      '--input - ',
      'diff live ',
    ];
    expect(choices.filter((choice) => !all.includes(choice))).toEqual([]);
  });
});
