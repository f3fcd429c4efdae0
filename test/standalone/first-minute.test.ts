import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { rdctlProgram } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { isStandalone, TOOL } from '../helpers/tool-program.ts';

beforeAll(() => {
  if (!isStandalone) throw new Error('RDCTL_TEST_BINARY must name the file that npm run dist has made');
});

/** The file alone: without Node on the PATH. */
function stage() {
  const folder = temporaryDirectory();
  const entry = join(folder, 'rdctl');
  symlinkSync(TOOL, entry);
  const home = join(folder, 'home');
  const env = { PATH: '/nonexistent', RDCTL_HOME: home, RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '0' };
  const rdctl = (...argv: string[]) => rdctlProgram(argv, { entry, env, cwd: folder });
  return { folder, home, entry, rdctl };
}

test('it starts itself as the service, survives a kill of it, and applies twice', async () => {
  const { folder, home, rdctl } = stage();
  writeFileSync(
    join(folder, 'p.yaml'),
    'apiVersion: rdctl/v1\nkind: Profile\nsettings:\n  version: 19\n  kubernetes:\n    enabled: false\nstate: started\n',
  );
  const applied = await rdctl('apply', '-f', 'p.yaml');
  expect(applied, applied.err).toMatchObject({ exit: 0 });
  const pid = () => JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8')).pid;
  const first = pid();
  const words = readFileSync(`/proc/${first}/cmdline`, 'utf8').split('\0');
  expect(words.slice(0, 2)).toEqual([TOOL, 'serve']);
  process.kill(first, 'SIGKILL');
  const again = await rdctl('apply', '-f', 'p.yaml');
  expect(again, again.err).toMatchObject({ exit: 0 });
  expect(pid()).not.toBe(first);
  expect(await rdctl('apply', '-f', 'p.yaml')).toMatchObject({
    exit: 0,
    out: expect.stringContaining('Nothing to change.'),
  });
  expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
});

test('it reads no configuration of a project that it happens to run in', async () => {
  const { folder, rdctl } = stage();
  writeFileSync(join(folder, '.env'), 'RDCTL_DRIVER=nonsense\nRDCTL_COMPAT=nonsense\n');
  writeFileSync(join(folder, 'evil.js'), 'console.log("evil")');
  writeFileSync(join(folder, 'bunfig.toml'), 'preload = ["./evil.js"]\n');
  writeFileSync(join(folder, 'tsconfig.json'), '{"compilerOptions":{"paths":{"*":["./evil.js"]}}}');
  writeFileSync(join(folder, 'package.json'), '{"type":"commonjs","imports":{"#x":"./evil.js"}}');
  expect(await rdctl('paths')).toMatchObject({ exit: 0, out: expect.not.stringContaining('evil'), err: '' });
});
