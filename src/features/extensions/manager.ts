import { RdError } from '../../errors.ts';
import { SerialQueue } from '../../os/serial-queue.ts';
import type { Origin } from '../../plan/history.ts';
import { type ExtensionImage, parseExtensionImage, permits } from '../../settings/extension-image.ts';
import { fullName } from '../../settings/image-reference.ts';
import type { Extensions, ExtensionsInput, Installed, RunningEngine } from './contract.ts';
import { internalError, notAllowedError, reasonOf } from './contract.ts';
import { type ExtensionRecord, idOf } from './directory.ts';
import { fetchImage, placeExtension, removeExtension, startCompanion, tagFor } from './installer.ts';
import { parseMetadata } from './metadata.ts';
import { companionImage } from './staging.ts';

const NOT_READY = 'Extension manager is not ready yet.';

/**
 * Opens the extensions of a service. First completes operations that a killed service left unfinished: finishes removals, and lists the extensions on
 * disk in the settings. Throws `ERR_IO`.
 */
export async function openExtensions(input: ExtensionsInput): Promise<Extensions> {
  const { files, log } = input;
  const ending = new AbortController();
  const { signal } = ending;
  let ready = false;
  const queue = new SerialQueue();

  await files.recover((names) =>
    input.record((installed) =>
      Object.fromEntries(Object.entries(installed).filter(([name]) => !names.includes(name))),
    ),
  );
  if (input.lockedBy() === undefined) await adoptFiles(input);

  /** Runs work in turn. Refuses it once the service stops. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    return queue
      .run(() => {
        if (signal.aborted) throw stopping();
        return work();
      })
      .catch((error: unknown) => {
        throw signal.aborted ? stopping(error) : error;
      });
  }

  async function install(id: string, origin?: Origin): Promise<Installed> {
    const image = parseExtensionImage(id);
    if (!image) throw notAllowedError(id, `${JSON.stringify(id)} is not the name of an image`, nameAdvice(id));
    checkAllowed(id, image, input);
    const engine = imageEngine(input.engine());
    const tag = image.tag ?? (await tagFor(image, engine.images, input, signal));
    checkAllowed(id, { ...image, tag }, input);
    const { installed } = input.settings();
    const present = (await files.readable()).get(image.name);
    if (present === tag && installed[image.name] === tag) return { outcome: 'unchanged', version: tag, leftOut: [] };
    checkUnlocked(input);
    let leftOut: string[] = [];
    if (present !== tag) {
      const requested = { id, image, tag };
      await fetchImage(requested, engine.images, signal);
      leftOut = await placeExtension(requested, engine, input, signal);
    }
    await input.record((before) => ({ ...before, [image.name]: tag }), origin);
    log('info', 'extension installed', { name: image.name, version: tag, ...(present ? { before: present } : {}) });
    return { outcome: 'installed', version: tag, leftOut };
  }

  async function uninstall(id: string, origin?: Origin): Promise<'removed' | 'unchanged'> {
    const image = parseExtensionImage(id);
    if (!image) return 'unchanged';
    const { name, tag } = image;
    const known = (await files.versions()).get(name) ?? ownEntry(input.settings().installed, name);
    if (known === undefined || (tag !== undefined && tag !== known)) return 'unchanged';
    checkUnlocked(input);
    await removeExtension(name, { ...input, record: (change) => input.record(change, origin) }, signal);
    return 'removed';
  }

  return {
    get ready() {
      return ready;
    },
    async list() {
      const records: Record<string, ExtensionRecord> = {};
      for (const name of (await files.versions()).keys()) {
        try {
          records[name] = await files.read(name);
        } catch (error) {
          log('warn', 'an extension cannot be read and is left out of the list', { name, error });
        }
      }
      return records;
    },
    install: (id, origin) => (ready ? inTurn(() => install(id, origin)).catch(wireError) : Promise.reject(notReady())),
    uninstall: (id, origin) =>
      ready ? inTurn(() => uninstall(id, origin)).catch(wireError) : Promise.reject(notReady()),
    engineIsUp() {
      ready = true;
      void inTurn(() => reconcileOnStart(input, signal)).catch((error: unknown) => {
        if (!signal.aborted) log('error', 'extensions could not be brought in line with the settings', { error });
      });
    },
    idle: () => queue.idle(),
    async close() {
      ending.abort();
      await queue.idle();
    },
  };
}

/** Lists the extensions on disk in the settings: a service may have been killed between the two writes. */
async function adoptFiles({ files, settings, record, log }: ExtensionsInput): Promise<void> {
  const onDisk = Object.fromEntries(await files.versions());
  const { installed } = settings();
  const differing = Object.keys(onDisk).filter((name) => ownEntry(installed, name) !== onDisk[name]);
  if (differing.length === 0) return;
  await record((before) => ({ ...before, ...onDisk }));
  log('warn', 'the settings did not name what is installed, and do so now', { extensions: differing });
}

function checkAllowed(id: string, image: ExtensionImage, { settings }: Pick<ExtensionsInput, 'settings'>): void {
  const { allowed } = settings();
  if (!allowed.enabled || permits(allowed.list, image)) return;
  throw notAllowedError(
    id,
    'application.extensions.allowed.list has no entry for it',
    'Add one to that list, or ask your administrator.',
  );
}

/** Returns advice for a name without a dot, which is not a registry here, though container clients accept `localhost` as one. */
function nameAdvice(id: string): string {
  const local = /^localhost(:\d+)?\//.exec(id);
  if (local) return `Write the registry as 127.0.0.1${local[1] ?? ''}: its name needs a dot here.`;
  return 'Write it as [REGISTRY[:PORT]/]NAME[:TAG], in lower case and without a digest.';
}

function checkUnlocked({ lockedBy }: Pick<ExtensionsInput, 'lockedBy'>): void {
  const holder = lockedBy();
  if (holder === undefined) return;
  throw new RdError('ERR_SETTING_LOCKED', `"application.extensions.installed" is locked by ${holder}.`);
}

function imageEngine(engine: RunningEngine | undefined): RunningEngine & Required<Pick<RunningEngine, 'images'>> {
  if (!engine) {
    throw new RdError('ERR_NOT_READY', 'The container engine is not running, and an extension comes out of an image.');
  }
  const { images } = engine;
  if (!images) throw internalError(new RdError('ERR_DRIVER_TERMINAL', `${engine.name} cannot be queried for images`));
  return { ...engine, images };
}

/** Rethrows errors that have a response of their own; wraps the rest and keeps the cause. */
function wireError(error: unknown): never {
  const known = ['ERR_EXTENSION_INVALID', 'ERR_FORBIDDEN', 'ERR_NOT_READY', 'ERR_SETTING_LOCKED', 'ERR_INTERNAL'];
  if (error instanceof RdError && !known.includes(error.code)) throw internalError(error);
  throw error;
}

function ownEntry(map: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(map, name) ? map[name] : undefined;
}

function notReady(): RdError {
  return new RdError('ERR_NOT_READY', NOT_READY);
}

function stopping(cause?: unknown): RdError {
  return new RdError('ERR_NOT_READY', 'the service is shutting down', { cause });
}

/**
 * Reconciles installed extensions with the settings whenever an engine has come up: removes those that the allow list no longer permits,
 * installs those that only the settings list, and runs exactly the containers of installed ones. A failed installation keeps its entry and
 * is retried next time; a permanent failure loses it, unless a lock holds the map.
 */
async function reconcileOnStart(input: ExtensionsInput, signal: AbortSignal): Promise<void> {
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
      if (isPermanent(error)) await forget(name, input);
    }
  }
}

/** Whether a failure is that of the image itself; with an unreachable registry or a full disk, a retry may succeed. */
function isPermanent(error: unknown): boolean {
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
  const companionImages = new Map<string, string>();
  for (const [name, tag] of await files.versions()) {
    try {
      const { metadata: document } = await files.read(name);
      const parsed = parseMetadata(JSON.stringify(document), platform);
      const image = parseExtensionImage(`${name}:${tag}`);
      if (!image || !('metadata' in parsed)) continue;
      const service = companionImage(parsed.metadata, `${fullName(image)}:${tag}`);
      if (service !== undefined) companionImages.set(idOf(name), service);
    } catch (error) {
      log('warn', 'an extension cannot be read', { name, error });
    }
  }
  for (const { id } of await engine.companions.list(signal)) {
    if (!companionImages.has(id)) await engine.companions.remove(id, signal);
  }
  for (const [id, image] of companionImages) {
    await startCompanion(engine, id, image, signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
      log('error', 'the container of an extension could not be started', { image, error });
    });
  }
}
