import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import type { OpenImage } from '../../drivers/driver.ts';
import { RdError } from '../../errors.ts';
import { isObject, type JsonObject } from '../../json.ts';
import { parseExtensionImage } from '../../settings/extension-image.ts';
import type { Platform } from '../../settings/field.ts';
import { fullName } from '../../settings/image-reference.ts';
import { type Budget, extract, fullBudget, readFileOf } from './extract.ts';
import { readForeignYaml } from './foreign-yaml.ts';
import { METADATA_LIMIT, type Metadata, OWN_IMAGE, parseMetadata } from './metadata.ts';
import { failedInstall, invalidMetadata } from './refusals.ts';

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
