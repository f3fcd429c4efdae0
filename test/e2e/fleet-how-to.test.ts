import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { builtTool } from '../helpers/built-tool.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { checkAll, runner, shown } from '../helpers/transcripts.ts';

const { entry } = builtTool();

/** A clone of the repository, as far as the documents use it. */
function scene(): string {
  const directory = temporaryDirectory();
  cpSync('examples', join(directory, 'examples'), { recursive: true });
  return directory;
}

const DOCUMENT = 'docs/fleet-profiles.md';
const COMMANDS = 'docs/fleet-commands.md';
const SESSION = '## Every option in one session';

describe('the sessions in the documents run as shown', () => {
  test('uses every option in one session', async () => {
    const directory = scene();
    try {
      await checkAll(shown(COMMANDS, SESSION), directory, entry());
    } finally {
      await runner(directory, entry())('rdctl shutdown');
    }
    expect(readFileSync(join(directory, 'old.yaml'), 'utf8')).toContain('adminAccess: false   # nobody is asked');
  });

  test('from a profile to deployment files, onto a Linux computer, and back', async () => {
    const directory = scene();
    await checkAll(shown(DOCUMENT, '## From a profile to deployment files'), directory, entry());
    mkdirSync(join(directory, '.config'));
    for (const part of ['locked', 'defaults']) {
      const place = join(directory, '.config', `rancher-desktop.${part}.json`);
      copyFileSync(join(directory, 'linux', `${part}.json`), place);
    }
    await checkAll(shown(DOCUMENT, '### Linux packages'), directory, entry());
    await checkAll(shown(DOCUMENT, '## Reading deployment files'), directory, entry());
    expect(JSON.parse(readFileSync(join(directory, 'report.json'), 'utf8'))).toMatchObject({
      kind: 'ImportReport',
      counts: { kept: 8, changed: 0, lost: 0 },
    });
  });

  test('what applies on one computer', async () => {
    const directory = scene();
    const document = 'docs/policies.md';
    const [, locked = ''] = /```json\n([\s\S]*?)```/.exec(readFileSync(document, 'utf8')) ?? [];
    mkdirSync(join(directory, '.config'));
    writeFileSync(join(directory, '.config/rancher-desktop.locked.json'), locked);
    const defaults = JSON.stringify({ version: 19, images: { namespace: 'team' } });
    writeFileSync(join(directory, '.config/rancher-desktop.defaults.json'), defaults);
    const run = runner(directory, entry());
    try {
      await run('rdctl start --driver simulated');
      await checkAll(shown(document, '## See which value applies'), directory, entry());
    } finally {
      await run('rdctl shutdown');
    }
  });

  test('which releases accept a profile', async () => {
    await checkAll(shown(DOCUMENT, '## Which releases accept a profile'), scene(), entry());
  });
});

describe('the session runs', () => {
  const commands = () => shown(COMMANDS, SESSION).map(({ command }) => command);

  test.each(['create-profile', 'import-profile', 'profile check', 'profile upgrade'])(
    '%s with each of its flags',
    async (name) => {
      const [, own = ''] = (await runner(scene(), entry())(`rdctl ${name} --help`)).split(/^(?:Global flags|Flags):$/m);
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

  test.each(['.plist', '.mobileconfig', '.reg', '.pol', '.json'])('reading a file %s', (ending) => {
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
