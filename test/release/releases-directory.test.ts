import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { publish } from '../../release/releases-directory.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

test('a release is published once, and the latest one never goes down', () => {
  const folder = temporaryDirectory();
  const built = join(folder, 'out');
  mkdirSync(join(built, 'manifests'), { recursive: true });
  writeFileSync(join(built, 'SHA256SUMS'), 'sums\n');
  const directory = join(folder, 'releases');
  const latest = () => readFileSync(join(directory, 'latest'), 'utf8');

  expect(publish(built, directory, '0.2.0')).toBe(`${join(directory, '0.2.0')}: published as the latest`);
  expect(latest()).toBe('0.2.0\n');
  expect(publish(built, directory, '0.1.1')).toContain('the latest stays 0.2.0');
  expect(publish(built, directory, '0.3.0-rc.1')).toContain('the latest stays 0.2.0');
  expect(latest()).toBe('0.2.0\n');
  publish(built, directory, '0.10.0');
  expect(latest()).toBe('0.10.0\n');
  expect(() => publish(built, directory, '0.2.0')).toThrow('a release never changes');
  expect(readdirSync(directory).sort()).toEqual(['0.1.1', '0.10.0', '0.2.0', '0.3.0-rc.1', 'latest']);
  expect(readdirSync(join(directory, '0.2.0')).sort()).toEqual(['SHA256SUMS', 'manifests']);
});
