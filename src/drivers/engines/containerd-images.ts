import { RdError } from '../../errors.ts';
import { isObject, type JsonObject } from '../../json.ts';
import { isLoopback, splitRegistry, splitTag } from '../../settings/image-reference.ts';
import type { ImageStore } from '../driver.ts';
import type { Shell } from '../shell.ts';
import { readLayers } from './layer-archive.ts';

/** The namespace that clients such as nerdctl use by default. */
const NAMESPACE = 'default';
const PULL_MS = 30 * 60_000;
const READ_MS = 10 * 60_000;
const DOCUMENT_BYTES = 4 * 1024 * 1024;

export interface ContainerdImagesParts {
  shell: Shell;
  socket: string;
  /** Directory with the registry host configuration; undefined while there is none. */
  hostsDirectory(): Promise<string | undefined>;
}

/**
 * Images of a containerd, by `ctr`. Image files are read from the layers in the content store: nothing is mounted, so nothing stays
 * mounted, and the machine never follows links of an image.
 */
export function containerdImages({ shell, socket, hostsDirectory }: ContainerdImagesParts): ImageStore {
  const argv = (args: readonly string[]) => [
    ...['ctr', '--address', socket, '--namespace', NAMESPACE, '--connect-timeout', '5s'],
    ...args,
  ];
  const ctr = async (args: readonly string[], signal: AbortSignal) =>
    (await shell.run(argv(args), { signal, maxOutput: 16 * 1024 * 1024 })).stdout;
  const content = (digest: string, signal: AbortSignal) =>
    shell.stream(argv(['content', 'get', digest]), { signal, timeoutMs: READ_MS });

  async function digestOf(reference: string, signal: AbortSignal): Promise<string | undefined> {
    const table = await ctr(['images', 'ls', `name==${JSON.stringify(reference)}`], signal);
    const row = table.split('\n').find((line) => line.startsWith(`${reference} `));
    return /\bsha256:[0-9a-f]{64}\b/.exec(row ?? '')?.[0];
  }

  async function documentOf(digest: unknown, signal: AbortSignal): Promise<JsonObject> {
    if (typeof digest !== 'string' || !/^sha256:[0-9a-f]{64}$/.test(digest)) throw damaged('a digest is missing');
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of content(digest, signal)) {
      size += chunk.length;
      if (size > DOCUMENT_BYTES) throw damaged(`${digest} is too large`);
      chunks.push(chunk);
    }
    try {
      const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
      if (isObject(value)) return value;
    } catch (cause) {
      throw damaged(`${digest} is not JSON`, cause);
    }
    throw damaged(`${digest} is no object`);
  }

  /** The manifest of an index for this machine's platform. */
  async function manifestOf(digest: string, signal: AbortSignal): Promise<JsonObject> {
    const document = await documentOf(digest, signal);
    if (!Array.isArray(document.manifests)) return document;
    const fitting = document.manifests.filter(isObject).filter(({ platform }) => {
      return isObject(platform) && platform.os === 'linux' && platform.architecture === architecture();
    });
    const [first] = fitting;
    if (!first) throw damaged(`it has nothing for linux/${architecture()}`);
    return documentOf(first.digest, signal);
  }

  return {
    has: async (reference, signal) => (await digestOf(reference, signal)) !== undefined,
    async pull(reference, signal) {
      const hosts = await hostsDirectory();
      const plain = isLoopback(splitRegistry(reference).registry) ? ['--plain-http'] : [];
      const args = ['images', 'pull', ...(hosts === undefined ? [] : ['--hosts-dir', hosts]), ...plain, reference];
      try {
        // It redraws its progress continuously.
        for await (const _drawn of shell.stream(argv(args), { signal, timeoutMs: PULL_MS }));
      } catch (error) {
        throw pullFailure(reference, error);
      }
    },
    async tags(name, signal) {
      const lines = (await ctr(['images', 'ls', '-q'], signal)).split('\n');
      return lines.flatMap((line) => {
        const found = splitTag(line);
        return found.name === name && found.tag !== undefined ? [found.tag] : [];
      });
    },
    async open(reference, signal, look) {
      const digest = await digestOf(reference, signal);
      if (digest === undefined) throw new RdError('ERR_NOT_FOUND', `containerd has no image ${reference}`);
      const manifest = await manifestOf(digest, signal);
      const { config } = await documentOf(isObject(manifest.config) ? manifest.config.digest : undefined, signal);
      const layers = (Array.isArray(manifest.layers) ? manifest.layers : []).map((layer) => {
        const layerDigest = isObject(layer) ? layer.digest : undefined;
        if (typeof layerDigest !== 'string') throw damaged('a layer has no digest');
        return layerDigest;
      });
      const archive = await readLayers(layers.length, (layer) => content(layers[layer] ?? '', signal));
      return look({ labels: labelsOf(config), archive });
    },
  };
}

function labelsOf(config: unknown): Record<string, string> {
  const labels = isObject(config) ? config.Labels : undefined;
  if (!isObject(labels)) return {};
  return Object.fromEntries(
    Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** The names that image formats use. */
function architecture(): string {
  return process.arch === 'x64' ? 'amd64' : process.arch;
}

function pullFailure(reference: string, error: unknown): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_DRIVER_FAILED') return error;
  const code = /not found/i.test(error.message)
    ? 'ERR_NOT_FOUND'
    : /denied|forbidden|unauthorized/i.test(error.message)
      ? 'ERR_FORBIDDEN'
      : 'ERR_DRIVER_FAILED';
  return new RdError(code, `containerd could not pull ${reference}: ${error.message}`, { cause: error });
}

function damaged(what: string, cause?: unknown): RdError {
  return new RdError('ERR_DRIVER_FAILED', `the image cannot be read: ${what}`, { cause });
}
