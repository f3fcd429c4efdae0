import semver from 'semver';
import type { ImageStore } from '../../drivers/driver.ts';
import { RdError } from '../../errors.ts';
import { defined } from '../../json.ts';
import type { ExtensionImage } from '../../settings/extension-image.ts';
import { fullName } from '../../settings/image-reference.ts';
import type { ExtensionsInput, RunningEngine } from './contract.ts';
import { internalError, invalidMetadata } from './contract.ts';
import { idOf } from './directory.ts';
import type { Metadata } from './metadata.ts';
import { registryTags } from './registry-tags.ts';
import { companionImage, stageExtension } from './staging.ts';

type InstallContext = Pick<ExtensionsInput, 'files' | 'platform' | 'fetch' | 'log'>;

/** An extension to be installed. `id` is the image as requested. */
export interface RequestedExtension {
  id: string;
  image: ExtensionImage;
  tag: string;
}

/**
 * Returns the default tag of an id without one, from the tags of the registry and of the engine. Without any, throws the refusal for "no tag can be
 * determined".
 */
export async function tagFor(
  image: ExtensionImage,
  images: ImageStore,
  { fetch, log }: InstallContext,
  signal: AbortSignal,
): Promise<string> {
  const local = await images.tags(fullName(image), signal);
  let failure: RdError | undefined;
  const offered = await (images.offeredTags?.(fullName(image)) ?? registryTags(image, signal, fetch)).catch(
    (error: unknown) => {
      if (signal.aborted || !(error instanceof RdError)) throw error;
      failure = error;
      return [];
    },
  );
  const tag = chooseTag([...new Set([...offered, ...local])]);
  if (tag === undefined) throw internalError(noTag(image, failure));
  if (failure)
    log('warn', 'the registry did not list tags; chose among those of the engine', { image: image.name, failure });
  return tag;
}

function noTag({ name }: ExtensionImage, failure: RdError | undefined): RdError {
  const why = failure ? `: ${failure.message}` : '';
  return new RdError('ERR_NOT_FOUND', `no default tag was found for ${name}${why}`, {
    cause: failure,
    advice: `Check the name, or specify a tag: ${name}:TAG`,
  });
}

/** Ensures that the engine has the image; pulls it only if it is missing. */
export async function fetchImage(
  { id, image, tag }: RequestedExtension,
  images: ImageStore,
  signal: AbortSignal,
): Promise<void> {
  const reference = `${fullName(image)}:${tag}`;
  try {
    if (!(await images.has(reference, signal))) await images.pull(reference, signal);
  } catch (error) {
    if (error instanceof RdError && error.code !== 'ERR_CANCELLED') throw invalidMetadata(id, fetchError(error));
    throw error;
  }
}

/** Returns the refusal for a failed pull. The compatible text mentions metadata, although none was read. */
function fetchError(error: RdError): RdError {
  const missing = error.code === 'ERR_NOT_FOUND' ? 'Check the name and the tag of the image.' : undefined;
  const advice = error.advice ?? missing;
  return new RdError(error.code, `its image could not be fetched: ${error.message}`, {
    cause: error,
    ...defined({ advice }),
  });
}

/** Installs the extension on disk and its container in the engine; both or neither. Keeps the previous version until then. */
export async function placeExtension(
  requested: RequestedExtension,
  engine: RunningEngine & { images: ImageStore },
  { files, platform, log }: InstallContext,
  signal: AbortSignal,
): Promise<string[]> {
  const { id, image, tag } = requested;
  const reference = `${fullName(image)}:${tag}`;
  const staged = await files.stage();
  try {
    const metadata = await engine.images
      .open(reference, signal, (open) =>
        stageExtension({ image: open, id, reference, tag, directory: staged, platform }),
      )
      .catch((error: unknown) => {
        throw error instanceof RdError && error.code === 'ERR_NOT_FOUND' ? invalidMetadata(id, error) : error;
      });
    signal.throwIfAborted();
    const leftOut = await runCompanion(requested, metadata, engine, signal);
    await files.commit(image.name, staged);
    for (const what of leftOut) log('warn', 'an extension does not get everything that it requests', { id, what });
    return leftOut;
  } finally {
    await files.discard(staged);
  }
}

async function runCompanion(
  { image, tag }: RequestedExtension,
  metadata: Metadata,
  { name, images, companions }: RunningEngine,
  signal: AbortSignal,
): Promise<string[]> {
  const service = companionImage(metadata, `${fullName(image)}:${tag}`);
  const key = idOf(image.name);
  if (service === undefined) {
    await companions?.remove(key, signal);
    return metadata.leftOut;
  }
  if (!companions || !images) {
    return [...metadata.leftOut, `the container of vm.image is not started: ${name} keeps none running for extensions`];
  }
  await startCompanion({ images, companions }, key, service, signal).catch((error: unknown) => {
    throw error instanceof RdError && error.code !== 'ERR_CANCELLED' ? internalError(error) : error;
  });
  return metadata.leftOut;
}

/** Pulls the image of a container and makes the engine keep it running. */
export async function startCompanion(
  { images, companions }: Required<Pick<RunningEngine, 'images' | 'companions'>>,
  key: string,
  image: string,
  signal: AbortSignal,
): Promise<void> {
  if (!(await images.has(image, signal))) await images.pull(image, signal);
  await companions.ensure({ id: key, image }, signal);
}

/**
 * Chooses the default tag: the highest semantic version (`1.2.3`, `v1.2.3`, `v.1.2.3`), else the tag with the highest number, else `latest`. Returns
 * undefined when there is none of these.
 */
export function chooseTag(tags: readonly string[]): string | undefined {
  const versions = tags.flatMap((tag) => {
    const version = semver.parse(tag.replace(/^v\.?/, ''));
    return version ? [{ tag, version }] : [];
  });
  const newest = versions.reduce<(typeof versions)[number] | undefined>(
    (best, each) => (best && semver.compare(best.version, each.version) >= 0 ? best : each),
    undefined,
  );
  if (newest) return newest.tag;
  const numbered = tags.flatMap((tag) => {
    const numbers = (tag.match(/\d+/g) ?? []).map(Number);
    return numbers.length === 0 ? [] : [{ tag, number: Math.max(...numbers) }];
  });
  const highest = numbered.reduce<(typeof numbered)[number] | undefined>(
    (best, each) => (best && best.number >= each.number ? best : each),
    undefined,
  );
  return highest?.tag ?? (tags.includes('latest') ? 'latest' : undefined);
}

/** Removes an extension: its files first, atomically, so that a crash afterwards ends in the same removal. */
export async function removeExtension(
  name: string,
  { files, record, engine, log }: Pick<ExtensionsInput, 'files' | 'record' | 'engine' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  const deleteFiles = await files.remove(name);
  await record(({ [name]: _gone, ...rest }) => rest);
  await deleteFiles();
  // While the engine is off, its container stays until the engine next comes up.
  await engine()
    ?.companions?.remove(idOf(name), signal)
    .catch((error: unknown) => log('warn', 'the container of an extension could not be removed', { name, error }));
  log('info', 'extension uninstalled', { name });
}
