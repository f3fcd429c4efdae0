import { RdError } from '../../errors.ts';
import { parseExtensionImage, permits } from '../../settings/extension-image.ts';
import { fullName } from '../../settings/image-reference.ts';
import type { ExtensionsInput, RunningEngine } from './contract.ts';
import { idOf } from './directory.ts';
import { fetchImage, placeExtension, startCompanion } from './installer.ts';
import { parseMetadata } from './metadata.ts';
import { reasonOf } from './refusals.ts';
import { removeExtension } from './removal.ts';
import { companionImage } from './staging.ts';

/**
 * Reconciles installed extensions with the settings whenever an engine has come up: removes those that the allow list no longer permits,
 * installs those that only the settings list, and runs exactly the containers of installed ones. A failed installation keeps its entry and
 * is retried next time; a permanent failure loses it, unless a lock holds the map.
 */
export async function bringUp(input: ExtensionsInput, signal: AbortSignal): Promise<void> {
  await removeRefused(input, signal);
  await installMissing(input, signal);
  const engine = input.engine();
  if (engine?.images && engine.companions) {
    await runCompanions(input, { images: engine.images, companions: engine.companions }, signal);
  }
}

async function removeRefused(input: ExtensionsInput, signal: AbortSignal): Promise<void> {
  const { allowed } = input.settings();
  if (!allowed.enabled) return;
  for (const [name, tag] of await input.files.versions()) {
    const image = parseExtensionImage(`${name}:${tag}`);
    if (image && permits(allowed.list, image)) continue;
    input.log('warn', 'the list of allowed extensions no longer permits one that was installed', { name, tag });
    await removeExtension(name, input, signal);
  }
}

async function installMissing(input: ExtensionsInput, signal: AbortSignal): Promise<void> {
  const { files, log } = input;
  const present = await files.readable();
  const { installed, allowed } = input.settings();
  for (const [name, tag] of Object.entries(installed)) {
    if (present.get(name) === tag) continue;
    const engine = input.engine();
    if (!engine?.images) return;
    const id = `${name}:${tag}`;
    const image = parseExtensionImage(id);
    if (!image || (allowed.enabled && !permits(allowed.list, image))) {
      log('warn', 'an extension of the settings is not allowed', { id });
      await forget(name, input);
      continue;
    }
    try {
      await fetchImage({ id, image, tag }, engine.images, signal);
      await placeExtension({ id, image, tag }, { ...engine, images: engine.images }, input, signal);
      log('info', 'extension installed', { name, version: tag, because: 'the settings name it' });
    } catch (error) {
      if (signal.aborted) throw error;
      log('error', 'an extension of the settings could not be installed', { id, error, reason: reasonOf(error) });
      if (isHopeless(error)) await forget(name, input);
    }
  }
}

/** The image itself is invalid; an unreachable registry, or a full disk, may be better next time. */
function isHopeless(error: unknown): boolean {
  const cause = error instanceof RdError ? error.cause : undefined;
  return cause instanceof RdError && cause.code === 'ERR_EXTENSION_INVALID';
}

async function forget(name: string, { lockedBy, record }: ExtensionsInput): Promise<void> {
  if (lockedBy() === undefined) await record(({ [name]: _gone, ...rest }) => rest);
}

async function runCompanions(
  input: ExtensionsInput,
  engine: Required<Pick<RunningEngine, 'images' | 'companions'>>,
  signal: AbortSignal,
): Promise<void> {
  const { files, platform, log } = input;
  const wanted = new Map<string, string>();
  for (const [name, tag] of await files.versions()) {
    try {
      const { metadata: document } = await files.read(name);
      const parsed = parseMetadata(JSON.stringify(document), platform);
      const image = parseExtensionImage(`${name}:${tag}`);
      if (!image || !('metadata' in parsed)) continue;
      const service = companionImage(parsed.metadata, `${fullName(image)}:${tag}`);
      if (service !== undefined) wanted.set(idOf(name), service);
    } catch (error) {
      log('warn', 'an extension cannot be read', { name, error });
    }
  }
  for (const { id } of await engine.companions.list(signal)) {
    if (!wanted.has(id)) await engine.companions.remove(id, signal);
  }
  for (const [id, image] of wanted) {
    await startCompanion(engine, id, image, signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
      log('error', 'the container of an extension could not be started', { image, error });
    });
  }
}
