import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readCredentials } from '../../src/drivers/clusters/k3s/api.ts';
import { RdError } from '../../src/errors.ts';
import { parseMetadata } from '../../src/features/extensions/metadata.ts';
import { HOSTILE_YAML } from '../helpers/hostile-yaml.ts';
import { rounds } from '../helpers/rounds.ts';
import { testSeed } from '../helpers/seed.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { editedArbitrary } from './documents/edits.ts';
import { fileReaders } from './documents/file-readers.ts';
import { hostile, inflated, random } from './documents/hostile.ts';
import { LABEL, READERS, type Reader } from './documents/readers.ts';

test('foreign documents are read or refused within the limits', async () => {
  const next = random(testSeed());
  const documents: Buffer[] = Object.values(HOSTILE_YAML).map((text) => Buffer.from(text));
  while (documents.length < rounds(40, 200)) documents.push(hostile(next));
  const first = process.memoryUsage().rss;
  for (const bytes of documents) {
    const text = bytes.toString('utf8');
    const began = process.cpuUsage();
    const metadata = parseMetadata(text.slice(0, 1024 * 1024), 'linux');
    expect(Object.keys(metadata)).toHaveLength(1);
    expect(readCredentials(text)).toBeUndefined();
    expect(process.cpuUsage(began).user / 1_000).toBeLessThan(5_000);
  }
  expect(Object.prototype).not.toHaveProperty('a');
  expect(process.memoryUsage().rss - first).toBeLessThan(512 * 1024 * 1024);
});

/** Seconds of the processor for one document of at most 1.2 MB: the slowest takes two, and attacks have taken minutes. */
const MOST_SECONDS = 10;

/** What a reader makes of a document: a value, or a refusal of ours. Anything else is thrown, and too much work is. */
async function outcomeOf(reader: Reader, bytes: Buffer): Promise<'read' | 'refused'> {
  const before = process.cpuUsage();
  const refusal = await refusalOf(reader, bytes);
  const { user, system } = process.cpuUsage(before);
  const seconds = (user + system) / 1e6;
  if (seconds > MOST_SECONDS) throw new Error(`${bytes.length} bytes took ${seconds} s of the processor`);
  if (refusal === undefined) return 'read';
  const text = [refusal.message, ...refusal.details].join('\n');
  if (!reader.nameless && !text.includes(LABEL)) throw new Error(`it does not say where: ${text}`, { cause: refusal });
  return 'refused';
}

async function refusalOf({ read }: Reader, bytes: Buffer): Promise<RdError | undefined> {
  try {
    await read(bytes);
    return undefined;
  } catch (error) {
    if (error instanceof RdError && error.message !== '') return error;
    throw error;
  }
}

test.each([...READERS, ...fileReaders('')].map(({ name }, at) => [name, at] as const))(
  'of %s, whatever it holds, is made a value or a refusal with its place, and nothing else',
  async (_name, at) => {
    const reader = [...READERS, ...fileReaders(temporaryDirectory())][at];
    if (!reader) throw new Error('no reader');
    for (const bytes of reader.samples) expect(await outcomeOf(reader, bytes)).toBe('read');
    const edited = fc.asyncProperty(editedArbitrary(reader.samples), async (bytes) => {
      await outcomeOf(reader, bytes);
    });
    await fc.assert(edited, { numRuns: rounds(300, 20_000), interruptAfterTimeLimit: rounds(3_000, 600_000) });
    const next = random(testSeed());
    const large: Buffer[] = Object.values(HOSTILE_YAML).map((text) => Buffer.from(text));
    for (let made = 0; made < rounds(2, 100); made += 1) {
      large.push(hostile(next));
      for (const sample of reader.samples.slice(0, 2)) large.push(inflated(sample, next));
    }
    for (const bytes of large) await outcomeOf(reader, bytes);
    expect(Object.prototype).not.toHaveProperty('a');
  },
);
