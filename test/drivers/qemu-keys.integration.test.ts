import { chmodSync, copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type QemuPlaces, qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import { forwardRecord } from '../../src/drivers/machines/qemu/ports/forward-record.ts';
import { ensureKeys } from '../../src/drivers/machines/qemu/start.ts';
import { findProgram, programPath } from '../../src/os/program.ts';
import { run } from '../../src/os/run.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const signal = new AbortController().signal;
const hasKeygen = (await findProgram('ssh-keygen', programPath(process.env.PATH))) !== undefined;

function filesOf({ key, hostKey }: QemuPlaces): string[] {
  return [key, `${key}.pub`, hostKey, `${hostKey}.pub`];
}

async function scene() {
  const places = qemuPlaces(temporaryDirectory(), '/nowhere');
  const ensure = (port = 2222) => ensureKeys(places, port, run, signal);
  await ensure();
  return { places, ensure, texts: () => filesOf(places).map((path) => readFileSync(path, 'utf8')) };
}

/** The public key of a private one, without its comment. */
async function publicOf(path: string): Promise<string> {
  const { stdout } = await run(['ssh-keygen', '-y', '-P', '', '-f', path]);
  return stdout.trim().split(' ').slice(0, 2).join(' ');
}

describe.skipIf(!hasKeygen)('the keys of a machine', () => {
  test('are kept while they are usable, and the guest is known by the port of this start', async () => {
    const { places, ensure, texts } = await scene();
    const before = texts();
    writeFileSync(places.knownHosts, 'half a li');
    await ensure(2223);
    expect(texts()).toEqual(before);
    const known = `[127.0.0.1]:2223 ${before[3]?.split(' ').slice(0, 2).join(' ')}\n`;
    expect(readFileSync(places.knownHosts, 'utf8')).toBe(known);
  });

  test.each<[string, (places: QemuPlaces) => void]>([
    ['a private half that is cut off', ({ key }) => truncateSync(key, 100)],
    ['a private half that is empty', ({ hostKey }) => truncateSync(hostKey, 0)],
    ['a public half that is empty', ({ hostKey }) => truncateSync(`${hostKey}.pub`, 0)],
    ['a public half that is cut off', ({ key }) => truncateSync(`${key}.pub`, 40)],
    ['a public half of another pair', ({ key, hostKey }) => copyFileSync(`${key}.pub`, `${hostKey}.pub`)],
    ['no public half', ({ key }) => rmSync(`${key}.pub`)],
    ['a private half that others may read', ({ key }) => chmodSync(key, 0o644)],
  ])('are recreated for %s', async (_what, spoil) => {
    const { places, ensure, texts } = await scene();
    const before = texts();
    spoil(places);
    await ensure();
    // The other pair stays.
    expect(texts().filter((text) => !before.includes(text))).toHaveLength(2);
    for (const path of [places.key, places.hostKey]) {
      expect(readFileSync(`${path}.pub`, 'utf8')).toContain(await publicOf(path));
    }
  });
});

test('a truncated list of ports has fewer ports, or none', async () => {
  const { forwards } = qemuPlaces(temporaryDirectory(), '/nowhere');
  const path = forwards.replace('/run/', '/');
  const record = forwardRecord(path);
  const target = { protocol: 'tcp', port: 8080, way: 'ssh', address: '0.0.0.0', binding: 'all' } as const;
  await record.write([{ ...target, state: 'unproven' }]);
  const text = readFileSync(path, 'utf8');
  expect(await record.read()).toEqual([{ ...target, state: 'unproven' }]);
  for (let length = 0; length < text.length - 1; length++) {
    writeFileSync(path, text.slice(0, length));
    expect(await record.read(), text.slice(0, length)).toEqual([]);
  }
});
