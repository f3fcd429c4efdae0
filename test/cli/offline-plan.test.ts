import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { imageStore } from '../../src/guest-images/store.ts';
import { sampleImage } from '../guest-images/guest-image.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { toolAt } from '../helpers/tool-home.ts';

const tool = builtTool();
const at = (home: string) => toolAt(tool.entry(), home);

describe('a plan while nothing runs', () => {
  const stdin =
    'apiVersion: rdctl/v1\nkind: Profile\nstate: started\nsettings: { version: 19, containerEngine: { name: containerd } }\n';

  test('says what apply then does', async () => {
    const home = temporaryDirectory();
    const program = at(home);
    const planned = JSON.parse((await program(['plan', '-f', '-', '-o', 'json', '--driver=simulated'], stdin)).out);
    const applied = JSON.parse((await program(['apply', '-f', '-', '-o', 'json', '--driver=simulated'], stdin)).out);
    const shape = ({ path, severity, before, after }: Record<string, unknown>) => ({ path, severity, before, after });
    expect(planned).toMatchObject({ basis: 'estimated', target: { driver: 'simulated', simulated: true } });
    expect(planned.changes.map(shape)).toEqual(applied.changes.map(shape));
    expect(planned.summary).toMatchObject({ restarts: 0, severity: 'live' });
    expect((await program(['shutdown'])).exit).toBe(0);

    const moby = stdin.replace('containerd', 'moby');
    const second = JSON.parse((await program(['plan', '-f', '-', '-o', 'json'], moby)).out);
    expect((await program(['plan', '-f', '-', '--driver', 'host'], moby)).exit).toBe(3);
    expect((await program(['apply', '-f', '-', '--driver', 'host'], moby)).exit).toBe(3);
    const carried = JSON.parse((await program(['apply', '-f', '-', '-o', 'json'], moby)).out);
    expect(second.changes.map(shape)).toEqual(carried.changes.map(shape));
    expect(second.changes.map(shape)).toContainEqual({
      path: 'state',
      severity: 'live',
      before: 'stopped',
      after: 'started',
    });
    expect((await program(['apply', '--previous'])).exit).toBe(0);
    expect(JSON.parse((await program(['status', '-o', 'json'])).out)).toMatchObject({
      power: 'started',
      engine: { name: 'containerd', state: 'running' },
    });
  });

  test('a settings file of a newer release has one sentence', async () => {
    const home = temporaryDirectory();
    const program = at(home);
    mkdirSync(join(home, 'config'));
    writeFileSync(join(home, 'config', 'settings.json'), '{"version":99}');
    const planned = await program(['plan', '-f', '-'], stdin);
    const applied = await program(['apply', '-f', '-', '--driver', 'simulated'], stdin);
    const sentence = /Error: .*settings\.json has settings of version 99, and this release knows versions up to 19\n/;
    expect(planned).toMatchObject({ exit: 1, err: expect.stringMatching(sentence) });
    expect(applied).toMatchObject({ exit: 1, err: expect.stringMatching(sentence) });
  });

  test('says that a driver lacks its guest image, until there is one', async () => {
    const home = temporaryDirectory();
    const argv = ['plan', '-f', '-', '--driver', 'qemu'];
    const env = { RDCTL_HOME: home };
    const lack =
      /The driver qemu has no guest image here, .* `rdctl image build`, .* `rdctl image fetch URL --sha256 SUM`\./;
    const text = await rdctl(argv, { env, stdin });
    expect(text).toMatchObject({ exit: 0, out: expect.stringMatching(lack) });
    expect(existsSync(join(home, 'guest-images'))).toBe(false);
    const warnings = async (given: readonly string[], more = {}) =>
      JSON.parse((await rdctl([...given, '-o', 'json'], { env: { ...env, ...more }, stdin })).out).warnings;
    expect(await warnings(argv)).toContainEqual(expect.stringMatching(lack));
    expect(await warnings(['plan', '-f', '-'], { RDCTL_DRIVER: 'qemu' })).toContainEqual(expect.stringMatching(lack));
    for (const given of [argv.slice(0, 3), [...argv.slice(0, 4), 'simulated']]) {
      expect(await warnings(given)).not.toContainEqual(expect.stringMatching(lack));
    }
    await sampleImage(imageStore(join(home, 'guest-images')));
    expect(await warnings(argv)).not.toContainEqual(expect.stringMatching(lack));
  });
});
