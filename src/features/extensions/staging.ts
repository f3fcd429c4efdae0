import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { OpenImage } from '../../drivers/driver.ts';
import { RdError } from '../../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json.ts';
import { parseExtensionImage } from '../../settings/extension-image.ts';
import type { Platform } from '../../settings/field.ts';
import { fullName } from '../../settings/image-reference.ts';
import { failedInstall, invalidMetadata } from './contract.ts';
import { type Budget, extract, fullBudget, readFileOf } from './extract.ts';
import { METADATA_LIMIT, type Metadata, OWN_IMAGE, parseMetadata } from './metadata.ts';
import { source } from './yaml-worker.ts?source';

const COMPOSE_LIMIT = 1024 * 1024;

export interface StagingInput {
  image: OpenImage;
  /** As requested. */
  id: string;
  /** `name:tag`, for containers that use the extension's own image. */
  reference: string;
  tag: string;
  /** An empty directory. */
  directory: string;
  platform: Platform;
}

/**
 * Stages an extension in its on-disk layout (docs/extensions.md), `version.txt` last. Throws the refusals of `refusals.ts`; the directory
 * is then unusable.
 */
export async function stageExtension(input: StagingInput): Promise<Metadata> {
  const { image, id, directory, tag } = input;
  const metadata = await metadataOf(input);
  const budget = fullBudget();
  const take = (path: string, to: string[], what: string, kind: 'file' | 'directory') =>
    copyOut({ image, id, path, destination: join(directory, ...to), what, kind, budget });

  await take(metadata.icon, [`icon${extension(metadata.icon)}`], `Could not copy icon file ${metadata.icon}`, 'file');
  if (metadata.ui.length > 0) await mkdir(join(directory, 'ui'));
  for (const { name, root } of metadata.ui) await take(root, ['ui', name], `Could not copy UI ${name}`, 'directory');
  await mkdir(join(directory, 'bin'));
  for (const path of metadata.binaries) {
    await take(path, ['bin', basename(path)], `Could not copy host binary ${path}`, 'file');
    await chmod(join(directory, 'bin', basename(path)), 0o755);
  }
  const compose = await composeOf(input, metadata);
  if (compose) {
    await mkdir(join(directory, 'compose'));
    await writeJson(join(directory, 'compose', 'compose.yaml'), compose);
  }
  await writeJson(join(directory, 'metadata.json'), metadata.document);
  await writeJson(join(directory, 'labels.json'), image.labels);
  await writeFile(join(directory, 'version.txt'), tag, { flush: true });
  return metadata;
}

/** The image that `vm.image` runs, fully qualified, with the extension's own name filled in. */
export function companionImage(metadata: Metadata, reference: string): string | undefined {
  const written = metadata.vm.image?.replace(OWN_IMAGE, () => reference);
  const image = written === undefined ? undefined : parseExtensionImage(written);
  return image ? `${fullName(image)}:${image.tag ?? 'latest'}` : written;
}

async function metadataOf({ image, id, platform }: StagingInput): Promise<Metadata> {
  let text: string;
  try {
    const archive = await image.archive('/metadata.json');
    if (!archive) throw new RdError('ERR_EXTENSION_INVALID', 'the image has no /metadata.json');
    text = (await readFileOf(archive, METADATA_LIMIT)).toString('utf8');
  } catch (error) {
    throw isCancelled(error) ? error : invalidMetadata(id, error);
  }
  const parsed = parseMetadata(text, platform);
  if ('metadata' in parsed) return parsed.metadata;
  throw invalidMetadata(id, new RdError('ERR_EXTENSION_INVALID', parsed.problem));
}

interface Copy {
  image: OpenImage;
  id: string;
  path: string;
  destination: string;
  what: string;
  kind: 'file' | 'directory';
  budget: Budget;
}

async function copyOut({ image, id, path, destination, what, kind, budget }: Copy): Promise<void> {
  try {
    const archive = await image.archive(path);
    if (!archive) throw new RdError('ERR_EXTENSION_INVALID', `the image has no ${path}`);
    const found = await extract(archive, destination, budget);
    if (found !== kind) throw new RdError('ERR_EXTENSION_INVALID', `${path} is a ${found} in the image`);
  } catch (error) {
    // A full disk or an unreachable engine is not the image's fault.
    if (error instanceof RdError && error.code === 'ERR_EXTENSION_INVALID') throw failedInstall(id, what, error);
    throw error;
  }
}

async function composeOf(input: StagingInput, metadata: Metadata): Promise<JsonObject | undefined> {
  const { image, id, reference } = input;
  const service = companionImage(metadata, reference);
  if (service !== undefined) return { services: { web: { image: service, restart: 'always', init: true } } };
  const path = metadata.vm.composefile;
  if (path === undefined) return undefined;
  try {
    const archive = await image.archive(path);
    if (!archive) throw new RdError('ERR_EXTENSION_INVALID', `the image has no ${path}`);
    return await composeFile(await readFileOf(archive, COMPOSE_LIMIT), path);
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_EXTENSION_INVALID')
      throw failedInstall(id, `Could not copy compose file ${path}`, error);
    throw error;
  }
}

async function composeFile(bytes: Buffer, path: string): Promise<JsonObject> {
  const read = await readForeignYaml(bytes);
  if ('problem' in read) throw new RdError('ERR_EXTENSION_INVALID', `${path} cannot be read as YAML: ${read.problem}`);
  if (isObject(read.value)) return read.value;
  throw new RdError('ERR_EXTENSION_INVALID', `${path} is not a compose file`);
}

function extension(path: string): string {
  const ending = posix.extname(path);
  return /^\.[A-Za-z0-9]{1,16}$/.test(ending) ? ending : '';
}

/** On one line: indented, a deeply nested document can be a hundred times as long. */
async function writeJson(path: string, value: object): Promise<void> {
  await writeFile(path, JSON.stringify(value), { flush: true });
}

function isCancelled(error: unknown): boolean {
  return error instanceof RdError && error.code === 'ERR_CANCELLED';
}

/** Result of the worker: the document as JSON, or the error as a clause. */
export type Answer = { text: string } | { problem: string };

/** Milliseconds per document. A compose file takes about ten. */
const LIMIT_MS = 5_000;
/** Memory limit of the worker in MiB. The largest accepted document needs about a fifth of it. */
const HEAP = { maxOldGenerationSizeMb: 384, maxYoungGenerationSizeMb: 32 };

/**
 * Parses untrusted YAML of at most 1 MiB, in a worker with a deadline: short texts can take a parser long, and must not block this process.
 * An error is returned as a clause.
 */
export async function readForeignYaml(
  bytes: Uint8Array,
  limitMs = LIMIT_MS,
): Promise<{ value: JsonValue } | { problem: string }> {
  const answer = await ask(bytes, limitMs);
  return 'text' in answer ? { value: JSON.parse(answer.text) } : answer;
}

function ask(bytes: Uint8Array, limitMs: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(source, {
      eval: true,
      workerData: bytes,
      resourceLimits: HEAP,
      env: {},
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
    });
    const timer = setTimeout(() => {
      end({ problem: `reading it takes longer than ${limitMs / 1000} s` });
    }, limitMs);
    const end = (answer: Answer) => {
      clearTimeout(timer);
      // Terminating resolves also for a thread in an infinite loop.
      worker.terminate().then(() => resolve(answer), reject);
    };
    worker.once('message', end);
    worker.once('error', (error: Error & { code?: string }) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') return end({ problem: 'reading it takes too much memory' });
      clearTimeout(timer);
      reject(error);
    });
  });
}
