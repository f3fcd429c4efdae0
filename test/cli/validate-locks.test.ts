import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const PROFILE = 'apiVersion: rdctl/v1\nkind: Profile\n';

async function validate(...documents: string[]) {
  const cwd = temporaryDirectory();
  const names = documents.map((text, index) => {
    writeFileSync(join(cwd, `${index}.yaml`), `${PROFILE}${text}`);
    return `${index}.yaml`;
  });
  return rdctl(['validate', ...names], { cwd, env: {} });
}

test('warns about a lock without a value, which no deployment profile can hold', async () => {
  const { exit, err } = await validate(
    'settings: { version: 19, images: { showAll: true } }\nlocked:\n  images: true\n  kubernetes: { port: true, enabled: false }\n',
  );
  expect(exit).toBe(0);
  expect(err.replace(/^W/, 'w')).toBe(
    'warning: 0.yaml:6:17: kubernetes.port is locked but has no value in the settings, so the lock has no effect (/locked/kubernetes/port)\n0.yaml: valid profile\n',
  );
});

test('the value may be in another layer, and a later layer may remove the lock', async () => {
  const lock = 'settings: { version: 19 }\nlocked: { kubernetes: { port: true } }\n';
  const value = 'settings: { version: 19, kubernetes: { port: 6444 } }\n';
  expect((await validate(lock, value)).err).not.toMatch(/warning/i);
  expect((await validate(value, lock)).err).not.toMatch(/warning/i);
  const lifted = 'settings: { version: 19 }\nlocked: { kubernetes: { port: false } }\n';
  expect((await validate(lock, lifted)).err).not.toMatch(/warning/i);
  expect((await validate(lock, lock)).err).toMatch(/^warning: 1.yaml:4:25: kubernetes.port is locked/i);
});

test('plan does not warn', async () => {
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'p.yaml'), `${PROFILE}settings: { version: 19 }\nlocked: { kubernetes: { port: true } }\n`);
  const { err } = await rdctl(['plan', 'p.yaml'], { cwd, env: { RDCTL_HOME: join(cwd, 'home') } });
  expect(err).not.toContain('locked');
});
