import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { replaceFile } from '../../cli/commands/profile/upgrade.ts';
import { commandHelp } from '../../cli/views/help-text.ts';
import { rdctl as run } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const OLD = 'version: 4 # old\ntelemetry: false\nkubernetes: {hostResolver: true, port: 6443}\n';
const NEW = 'version: 19 # old\napplication:\n  telemetry:\n    enabled: false\nkubernetes:\n  port: 6443\n';

function scene(text: string | Buffer = OLD, name = 'p.yaml') {
  const cwd = temporaryDirectory();
  const file = join(cwd, name);
  writeFileSync(file, text);
  const rdctl = (argv: readonly string[], stdin = '') => run(['profile', 'upgrade', ...argv], { cwd, stdin });
  return { cwd, file, rdctl, text: () => readFileSync(file, 'utf8') };
}

test.each([
  ['profile-upgrade', async () => (await import('../../cli/commands/profile/upgrade.ts')).profileUpgrade],
  ['diff', async () => (await import('../../cli/commands/diff.ts')).diff],
] as const)('help of %s', async (name, load) => {
  const help = commandHelp(await load(), 'linux');
  await expect(help).toMatchFileSnapshot(`../golden/help/${name}.txt`);
  expect(help.split('\n').filter((line) => line.length > 80)).toEqual([]);
});

describe('profile upgrade', () => {
  test('control and invisible characters are shown as their code points and stay in the file', async () => {
    const hidden = '\u009b\u061c\u200b\u202e\u2066\ufeff';
    const escaped = '\\u009b\\u061c\\u200b\\u202e\\u2066\\ufeff';
    const { rdctl, text } = scene(`version: 4 # ${hidden}\ntelemetry: false\n`);
    const { exit, out } = await rdctl(['p.yaml']);
    expect(exit).toBe(0);
    expect(out).toContain(`-version: 4 # ${escaped}\n`);
    expect(out).not.toMatch(/[\u009b\u061c\u200b\u202e\u2066\ufeff]/);
    expect(text()).toContain(`version: 19 # ${hidden}\n`);
  });

  test('rewrites the file, shows the changes, and lists settings that no longer exist', async () => {
    const { rdctl, text, cwd } = scene();
    const { exit, out, err } = await rdctl(['p.yaml']);
    expect({ exit, err }).toEqual({
      exit: 0,
      err: 'Note: kubernetes.hostResolver was removed: it has not existed since settings version 14\nWrote p.yaml.\n',
    });
    expect(text()).toBe(NEW);
    expect(out).toMatch(
      /^--- p\.yaml \(version 4\)\n\+\+\+ p\.yaml \(version 19\)\n@@ -1,3 \+1,6 @@\n-version: 4 # old\n/,
    );
    expect(readdirSync(cwd)).toEqual(['p.yaml']);
    expect(await rdctl(['p.yaml'])).toEqual({
      exit: 0,
      out: '',
      err: 'p.yaml is already at version 19, the newest: nothing to do.\n',
    });
    expect(text()).toBe(NEW);
  });

  test('--dry-run writes nothing, and exits 2 when there is something to upgrade', async () => {
    const { rdctl, text } = scene();
    const dry = await rdctl(['--dry-run', 'p.yaml']);
    expect(dry).toMatchObject({ exit: 2, out: expect.stringContaining('+version: 19 # old') });
    expect(dry.err).not.toContain('Wrote');
    expect(text()).toBe(OLD);
    expect((await rdctl(['p.yaml'])).out).toBe(dry.out);
    expect(await rdctl(['--dry-run', 'p.yaml'])).toMatchObject({ exit: 0, out: '' });
  });

  test('- reads standard input and writes the document to standard output', async () => {
    const { rdctl } = scene();
    expect(await rdctl(['-'], OLD)).toMatchObject({ exit: 0, out: NEW, err: expect.stringContaining('+version: 19') });
    expect(await rdctl(['-'], NEW)).toMatchObject({ exit: 0, out: NEW, err: expect.stringContaining('nothing to do') });
    expect(await rdctl(['-', '--dry-run'], OLD)).toMatchObject({ exit: 2, out: expect.stringMatching(/^--- <stdin>/) });
  });

  test('--out-file leaves the file unchanged', async () => {
    const { rdctl, text, cwd } = scene();
    expect(await rdctl(['p.yaml', '--out-file', 'n.yaml'])).toMatchObject({
      exit: 0,
      err: expect.stringMatching(/^Note: .*\nWrote n\.yaml\.\n$/),
    });
    expect(text()).toBe(OLD);
    expect(readFileSync(join(cwd, 'n.yaml'), 'utf8')).toBe(NEW);
    expect(await rdctl(['-', '-o', 'json', '--out-file', 'm.yaml'], OLD)).toMatchObject({
      exit: 0,
      out: expect.stringMatching(/^\{/),
    });
    expect(readFileSync(join(cwd, 'm.yaml'), 'utf8')).toBe(NEW);
  });

  test('-o json', async () => {
    const { rdctl, text } = scene();
    const report = async (...argv: string[]) => JSON.parse((await rdctl(['p.yaml', '-o', 'json', ...argv])).out);
    const changes = [
      { from: 'version', to: 'version', before: 4, after: 19, reason: 'version 4 is upgraded to the newest' },
      {
        from: 'telemetry',
        to: 'application.telemetry.enabled',
        before: false,
        after: false,
        reason: 'moved in settings version 5',
      },
      { from: 'kubernetes.hostResolver', to: null, before: true, reason: 'has not existed since settings version 14' },
    ];
    const document = {
      kind: 'ProfileUpgrade',
      formatVersion: 1,
      file: 'p.yaml',
      from: 4,
      to: 19,
      changes,
      notices: [],
    };
    expect(await report('--dry-run')).toEqual({ ...document, written: false });
    expect(await report()).toEqual({ ...document, written: true });
    expect(text()).toBe(NEW);
    expect(await report()).toEqual({ ...document, from: 19, changes: [], written: false });
  });

  test('removes the comments of removed settings, with a note', async () => {
    const { rdctl, text } = scene(
      'version: 4\n# all of it\n\nkubernetes:\n  # old\n  hostResolver: true # x\n  port: 6443\n',
    );
    const { exit, out } = await rdctl(['p.yaml', '--dry-run', '-o', 'json']);
    expect(exit).toBe(2);
    expect(JSON.parse(out).changes[1]).toMatchObject({
      from: 'kubernetes.hostResolver',
      to: null,
      comments: ['# old', '# x'],
    });
    expect((await rdctl(['p.yaml'])).err).toMatch(/^Note: kubernetes\.hostResolver was removed with its comments: it /);
    expect(text()).toBe('version: 19\n# all of it\n\nkubernetes:\n  port: 6443\n');
  });

  test('--platform resolves platform-dependent values; without it, a note does', async () => {
    const old = 'version: 7\napplication: {pathManagementStrategy: notset}\n';
    const { rdctl } = scene(old);
    const here = await rdctl(['p.yaml', '--dry-run']);
    expect(here.out).toContain('  pathManagementStrategy: rcfiles');
    expect(here.err).toBe(
      'Note: application.pathManagementStrategy: upgraded for Linux, this platform; for another one, use --platform\n',
    );
    const windows = await rdctl(['p.yaml', '--platform', 'windows', '--dry-run']);
    expect(windows).toMatchObject({
      exit: 2,
      out: expect.stringContaining('  pathManagementStrategy: manual'),
      err: '',
    });
    const linux = await rdctl(['p.yaml', '--platform', 'linux', '--dry-run', '-o', 'json']);
    expect(JSON.parse(linux.out)).toMatchObject({ notices: [] });
    const report = await rdctl(['p.yaml', '--dry-run', '-o', 'json']);
    expect(JSON.parse(report.out).notices).toEqual([expect.stringContaining('upgraded for Linux')]);
  });

  test('-o json is not mixed with the document on standard output', async () => {
    const { exit, out } = await scene().rdctl(['-', '-o', 'json'], OLD);
    expect({ exit, error: JSON.parse(out) }).toMatchObject({ exit: 1, error: { code: 'ERR_USAGE' } });
  });

  test('reports all errors at once and writes nothing', async () => {
    const { rdctl, text } = scene('version: 4\ntelemetry: 1\nupdatr: true\n');
    const { exit, out, err } = await rdctl(['p.yaml']);
    expect({ exit, out }).toEqual({ exit: 3, out: '' });
    expect(err).toContain('2 errors in p.yaml; nothing was written.');
    expect(err).toMatch(/p\.yaml:2:12: .*\n.*p\.yaml:3:1: .*did you mean updater/);
    expect(text()).toContain('updatr');
  });

  test.each([
    ['examples/policies/io.rancherdesktop.profile.locked.plist', 'plist'],
    ['examples/policies/policies.reg', 'reg'],
  ])('%s is rewritten completely instead', async (path, format) => {
    const { rdctl, text, file } = scene(readFileSync(path), 'file');
    const before = text();
    expect(await rdctl([file])).toMatchObject({
      exit: 3,
      out: '',
      err: expect.stringMatching(new RegExp(`rdctl import-profile .* && rdctl create-profile --output ${format} `)),
    });
    expect(text()).toBe(before);
  });

  test.each([
    [[], 'no file specified'],
    [['a', 'b'], 'only one file can be upgraded at a time; got 2'],
    [['p.yaml', '--platform', 'beos'], 'platform'],
    [['p.yaml', '--dry-run', '--out-file', 'x'], '--dry-run and --out-file cannot be used together'],
    [['none.yaml'], 'no such file or directory'],
    [['p.yaml', '--out-file', 'no/x'], 'does not exist'],
  ])('%j', async (argv, message) => {
    const { rdctl, text } = scene();
    expect(await rdctl(argv, OLD)).toMatchObject({ exit: 1, out: '', err: expect.stringContaining(message) });
    expect(text()).toBe(OLD);
  });
});

describe('the file', () => {
  test('keeps mode and owner, and a link stays a link', async () => {
    const { rdctl, cwd, file } = scene();
    chmodSync(file, 0o640);
    if (process.getuid?.() === 0) chownSync(file, 1234, 5678);
    const { uid, gid } = statSync(file);
    mkdirSync(join(cwd, 'etc'));
    symlinkSync('../p.yaml', join(cwd, 'etc', 'link.yaml'));
    expect((await rdctl(['etc/link.yaml'])).exit).toBe(0);
    expect(lstatSync(join(cwd, 'etc', 'link.yaml')).isSymbolicLink()).toBe(true);
    expect(readFileSync(file, 'utf8')).toBe(NEW);
    expect(statSync(file)).toMatchObject({ uid, gid });
    expect(statSync(file).mode & 0o7777).toBe(0o640);
    expect(readdirSync(cwd).sort()).toEqual(['etc', 'p.yaml']);
  });

  test('is refused when it is read-only, even as root', async () => {
    const { rdctl, file, text } = scene();
    chmodSync(file, 0o444);
    expect(await rdctl(['p.yaml'])).toMatchObject({
      exit: 1,
      out: '',
      err: expect.stringContaining('it is read-only'),
    });
    expect(text()).toBe(OLD);
    expect((await rdctl(['p.yaml', '--dry-run'])).exit).toBe(2);
  });

  test('is refused when a hard link would keep the old content', async () => {
    const { rdctl, cwd, file, text } = scene();
    linkSync(file, join(cwd, 'other.yaml'));
    expect(await rdctl(['p.yaml'])).toMatchObject({ exit: 1, err: expect.stringContaining('hard link') });
    expect(text()).toBe(OLD);
  });

  test('is not overwritten when it changed in the meantime', async () => {
    const { file, text } = scene();
    await expect(replaceFile(file, Buffer.from('older'), 'new')).rejects.toMatchObject({
      code: 'ERR_IO',
      message: expect.stringContaining('changed'),
    });
    expect(text()).toBe(OLD);
  });
});
