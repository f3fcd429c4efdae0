import { existsSync, lstatSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const PROFILE = JSON.stringify({ version: 19, images: { showAll: false } });

describe('files as arguments', () => {
  test.each(['plan', 'validate'])('%s accepts them without -f', async (command) => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'a.json'), PROFILE);
    writeFileSync(join(cwd, 'b.json'), JSON.stringify({ version: 19, images: { showAll: true } }));
    const env = { RDCTL_HOME: temporaryDirectory() };
    const flagged = await rdctl([command, '-f', 'a.json', '-f', 'b.json'], { env, cwd });
    expect(await rdctl([command, 'a.json', 'b.json'], { env, cwd })).toEqual(flagged);
    expect(flagged.exit).toBe(0);
  });

  test('init leaves nothing of a file that could not be written completely', async () => {
    const cwd = temporaryDirectory();
    const env = { RDCTL_HOME: temporaryDirectory() };
    const init = (...argv: string[]) => rdctl(['init', '--out-file', ...argv], { env, cwd });
    expect((await init('p.yaml')).exit).toBe(0);
    const before = readFileSync(join(cwd, 'p.yaml'), 'utf8');
    expect(await init('p.yaml')).toMatchObject({ exit: 1, err: expect.stringContaining('already exists') });
    symlinkSync('p.yaml', join(cwd, 'link.yaml'));
    expect((await init('link.yaml', '--force', '--all')).exit).toBe(0);
    expect(readFileSync(join(cwd, 'p.yaml'), 'utf8')).not.toBe(before);
    expect(lstatSync(join(cwd, 'link.yaml')).isSymbolicLink()).toBe(true);
    expect((await init('none/p.yaml')).exit).toBe(1);
    if (existsSync('/dev/full')) {
      expect(await init('/dev/full', '--force')).toMatchObject({
        exit: 1,
        err: expect.stringContaining('no space left'),
      });
      expect(lstatSync('/dev/full').isCharacterDevice()).toBe(true);
    }
    expect(readdirSync(cwd).sort()).toEqual(['link.yaml', 'p.yaml']);
  });
});
