import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { followedIntegration } from '../../helpers/followed-integration.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

/** A user with a bash and our engine, and the integration of a service that manages both. */
async function scene() {
  const home = temporaryDirectory();
  const bashrc = join(home, '.bashrc');
  writeFileSync(bashrc, '# mine\n');
  const integration = followedIntegration(home);
  integration.mobyRuns(`unix://${join(home, 'engine.sock')}`);
  await integration.userFiles();
  return { ...integration, home, bashrc };
}

test('a block that was taken out is seen when it happens, and put back', async () => {
  const { bashrc, fileDrift, repair, onFilesChanged } = await scene();
  const managed = readFileSync(bashrc, 'utf8');
  expect(managed).not.toBe('# mine\n');
  expect(await fileDrift()).toEqual([]);
  const seen = new Promise<void>((resolve) => onTestFinished(onFilesChanged(resolve)));
  writeFileSync(bashrc, '# mine\n');
  await seen;
  expect(await fileDrift()).toEqual([{ part: 'path', change: expect.objectContaining({ file: bashrc }) }]);
  await repair(['path']);
  expect(readFileSync(bashrc, 'utf8')).toBe(managed);
  expect(await fileDrift()).toEqual([]);
});

test('a removed docker context is drift; another context that was selected is not', async () => {
  const { home, fileDrift, repair } = await scene();
  const config = join(home, '.docker', 'config.json');
  expect(JSON.parse(readFileSync(config, 'utf8'))).toEqual({ currentContext: 'rdctl' });
  const meta = (name: string) =>
    join(home, '.docker', 'contexts', 'meta', createHash('sha256').update(name).digest('hex'));
  mkdirSync(meta('work'));
  writeFileSync(join(meta('work'), 'meta.json'), '{"Name":"work"}');
  writeFileSync(config, '{ "currentContext": "work" }');
  expect(await fileDrift()).toEqual([]);
  rmSync(meta('rdctl'), { recursive: true });
  expect((await fileDrift()).map(({ part }) => part)).toContain('docker');
  await repair(['docker']);
  expect(await fileDrift()).toEqual([]);
  expect(readFileSync(config, 'utf8')).toBe('{ "currentContext": "work" }');
});
